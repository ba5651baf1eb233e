#include "worker/train/confusion.h"

#include <algorithm>
#include <span>

#include "models/base/errors.h"

namespace syncopate {

void ConfusionMatrix::add(const Tensor& logits, const Tensor& targets) {
  const std::span<const float> scores = logits.f32();
  const std::span<const std::int32_t> labels = targets.i32();
  const auto classes = static_cast<std::size_t>(num_classes_);
  check(scores.size() == labels.size() * classes, "there is a logit per sample and class");
  const bool is_map = targets.shape().size() > 1;
  for (std::size_t n = 0; n < labels.size(); ++n) {
    if (is_map && labels[n] == kUncounted) continue;
    const auto row = scores.subspan(n * classes, classes);
    const auto best = static_cast<std::int32_t>(std::ranges::max_element(row) - row.begin());
    ++counts_[{labels[n], best}];
  }
}

std::vector<ClassQuality> ConfusionMatrix::classes() const {
  std::vector<ClassQuality> classes(static_cast<std::size_t>(num_classes_));
  std::vector<std::int64_t> correct(classes.size());
  for (const auto& [pair, count] : counts_) {
    const auto target = static_cast<std::size_t>(pair.first);
    const auto predicted = static_cast<std::size_t>(pair.second);
    classes[target].samples += count;
    classes[predicted].predicted += count;
    if (target == predicted) correct[target] += count;
  }
  const auto fraction = [](std::int64_t part, std::int64_t whole) -> std::optional<double> {
    if (whole == 0) return std::nullopt;
    return static_cast<double>(part) / static_cast<double>(whole);
  };
  for (std::size_t c = 0; c < classes.size(); ++c) {
    classes[c].precision = fraction(correct[c], classes[c].predicted);
    classes[c].recall = fraction(correct[c], classes[c].samples);
    classes[c].iou = fraction(correct[c], classes[c].samples + classes[c].predicted - correct[c]);
  }
  return classes;
}

std::optional<double> ConfusionMatrix::mean_iou() const {
  double sum = 0.0;
  int count = 0;
  for (const ClassQuality& quality : classes()) {
    if (!quality.iou) continue;
    sum += *quality.iou;
    ++count;
  }
  if (count == 0) return std::nullopt;
  return sum / count;
}

}  // namespace syncopate
