#include "worker/train/confusion.h"

#include <algorithm>
#include <span>

#include "models/base/errors.h"

namespace syncopate {

namespace {

std::optional<double> fraction(std::int64_t part, std::int64_t whole) {
  if (whole == 0) return std::nullopt;
  return static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

ClassCounts& ClassCounts::operator+=(const ClassCounts& other) noexcept {
  samples += other.samples;
  predicted += other.predicted;
  correct += other.correct;
  return *this;
}

std::optional<double> ClassCounts::precision() const { return fraction(correct, predicted); }
std::optional<double> ClassCounts::recall() const { return fraction(correct, samples); }
std::optional<double> ClassCounts::iou() const {
  return fraction(correct, samples + predicted - correct);
}

std::optional<double> mean_iou(std::span<const ClassCounts> classes) {
  double sum = 0.0;
  int count = 0;
  for (const ClassCounts& counts : classes) {
    if (const auto iou = counts.iou()) {
      sum += *iou;
      ++count;
    }
  }
  if (count == 0) return std::nullopt;
  return sum / count;
}

void ConfusionMatrix::add(const Tensor& logits, const Tensor& targets) {
  const std::span<const float> scores = logits.f32();
  const std::span<const std::int32_t> labels = targets.i32();
  const auto classes = static_cast<std::size_t>(num_classes_);
  check(scores.size() == labels.size() * classes, "there is a logit per sample and class");
  const bool is_map = targets.shape().size() > 1;
  // Neighbouring pixels often have the same pair, which is then not searched for again.
  std::pair<std::int32_t, std::int32_t> last{-1, -1};
  std::int64_t* count = nullptr;
  for (std::size_t n = 0; n < labels.size(); ++n) {
    if (is_map && labels[n] == kUncounted) continue;
    const auto row = scores.subspan(n * classes, classes);
    const auto best = static_cast<std::int32_t>(std::ranges::max_element(row) - row.begin());
    const std::pair pair{labels[n], best};
    if (count == nullptr || pair != last) count = &counts_[pair];
    last = pair;
    ++*count;
  }
}

void ConfusionMatrix::add(std::int32_t target, std::int32_t predicted, std::int64_t count) {
  if (count > 0) counts_[{target, predicted}] += count;
}

std::vector<ClassCounts> ConfusionMatrix::classes() const {
  std::vector<ClassCounts> classes(static_cast<std::size_t>(num_classes_));
  for (const auto& [pair, count] : counts_) {
    const auto target = static_cast<std::size_t>(pair.first);
    const auto predicted = static_cast<std::size_t>(pair.second);
    classes[target].samples += count;
    classes[predicted].predicted += count;
    if (target == predicted) classes[target].correct += count;
  }
  return classes;
}

}  // namespace syncopate
