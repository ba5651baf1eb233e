#include "worker/input/validation_split.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "models/base/errors.h"
#include "models/base/random.h"

namespace syncopate {
namespace {

// Some of the samples of another data set, which it keeps alive.
class SampleSubset final : public Dataset {
 public:
  SampleSubset(std::shared_ptr<const Dataset> whole, std::vector<std::uint32_t> indices)
      : whole_(std::move(whole)), indices_(std::move(indices)) {}

  std::int64_t size() const noexcept override { return static_cast<std::int64_t>(indices_.size()); }
  const SampleSpec& spec() const noexcept override { return whole_->spec(); }
  void read(std::int64_t index, const Draw& draw, const SampleView& sample) const override {
    whole_->read(at(index), draw, sample);
  }
  std::int32_t label(std::int64_t index) const override { return whole_->label(at(index)); }
  std::uint64_t fingerprint(std::int64_t index) const override {
    return whole_->fingerprint(at(index));
  }
  BadSamples* bad_samples() const noexcept override { return whole_->bad_samples(); }
  std::optional<StoredPicture> stored_picture(std::int64_t index) const override {
    return whole_->stored_picture(at(index));
  }

 private:
  std::int64_t at(std::int64_t index) const {
    check(index >= 0 && index < size(), "a sample outside the data set");
    return indices_[static_cast<std::size_t>(index)];
  }

  std::shared_ptr<const Dataset> whole_;
  std::vector<std::uint32_t> indices_;
};

}  // namespace

double parse_split(const std::string& text) {
  constexpr std::string_view kPrefix = "val=";
  double fraction = 0.0;
  if (text.starts_with(kPrefix)) {
    const char* const end = text.data() + text.size();
    const auto [last, error] = std::from_chars(text.data() + kPrefix.size(), end, fraction);
    if (error != std::errc{} || last != end) fraction = 0.0;
  }
  if (fraction > 0.0 && fraction < 1.0) return fraction;
  throw UsageError(fmt::format(
      "--split {}: expected val=FRACTION with a fraction between 0 and 1, such as val=0.1", text));
}

void split_validation(DataSplits& data, const std::string& text, std::uint64_t seed) {
  const double fraction = parse_split(text);
  if (data.validation != nullptr) {
    throw UsageError(
        fmt::format("--split {}: {} has a validation split of {} samples; leave --split out", text,
                    data.name, data.validation->size()));
  }
  const std::int64_t samples = data.train->size();
  const auto validation = std::llround(fraction * static_cast<double>(samples));
  if (validation < 1 || validation >= samples ||
      samples > std::numeric_limits<std::uint32_t>::max()) {
    throw UsageError(fmt::format(
        "--split {}: {} training samples would give {} for validation; expected 1 to {}", text,
        samples, validation, samples - 1));
  }
  std::vector<std::uint32_t> order =
      random_permutation(static_cast<std::uint32_t>(samples), seed, hash_name("validation split"));
  std::vector<std::uint32_t> held_out(order.end() - validation, order.end());
  order.resize(order.size() - held_out.size());
  // In the order of the data set, which files on a disk are read fastest in.
  std::ranges::sort(order);
  std::ranges::sort(held_out);
  const std::shared_ptr<const Dataset> whole = std::move(data.train);
  data.train = subset_of(whole, std::move(order));
  data.validation = subset_of(whole, std::move(held_out));
}

std::unique_ptr<Dataset> subset_of(std::shared_ptr<const Dataset> whole,
                                   std::vector<std::uint32_t> indices) {
  return std::make_unique<SampleSubset>(std::move(whole), std::move(indices));
}

}  // namespace syncopate
