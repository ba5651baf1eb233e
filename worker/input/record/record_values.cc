// Samples of raw values in records: tfrecord:GLOB with --raw-shape.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <charconv>
#include <cstring>
#include <utility>

#include "models/base/errors.h"
#include "models/base/random.h"
#include "worker/input/array/value_statistics.h"
#include "worker/input/record/record_samples.h"

namespace syncopate {
namespace {

constexpr std::size_t kMostSampleBytes = std::size_t{256} << 20;

constexpr std::array<std::pair<std::string_view, DType>, 3> kValueTypes = {
    {{"u8", DType::kU8}, {"u16", DType::kU16}, {"f32", DType::kF32}}};

// Returns "; give 8x8x5:u8, if that is their shape" with the first shape of this many `bytes`:
// first `input` with other types is tried, then with another last extent; "" if none fits.
std::string fitting_shape(const TensorSpec& input, std::size_t bytes) {
  const auto advice = [](const Shape& shape, std::string_view type) {
    return fmt::format("; give {}:{}, if that is their shape", fmt::join(shape, "x"), type);
  };
  for (const auto& [type, dtype] : kValueTypes) {
    TensorSpec other = input;
    other.dtype = dtype;
    if (other.size_bytes() == bytes) return advice(other.shape, type);
  }
  TensorSpec one = input;
  one.shape.back() = 1;
  if (bytes == 0 || bytes % one.size_bytes() != 0) return "";
  one.shape.back() = static_cast<std::int64_t>(bytes / one.size_bytes());
  return advice(one.shape, name(input.dtype));
}

class RecordValues final : public Dataset {
 public:
  RecordValues(std::shared_ptr<const RecordShards> shards, FeatureName image,
               const TensorSpec& input, int num_classes)
      : shards_(std::move(shards)),
        image_(std::move(image)),
        spec_(classified_samples(input.shape, num_classes, input.dtype)) {}

  std::int64_t size() const noexcept override { return shards_->size(); }
  const SampleSpec& spec() const noexcept override { return spec_; }

  void read(std::int64_t index, const Draw& draw, const SampleView& sample) const override {
    const std::string what = shards_->describe(index);
    const Example example = parse_example(shards_->read(index), what);
    const std::span<const std::byte> values = values_of(example, what);
    if (const auto bad = find_bad_value(spec_.inputs[0], values)) {
      throw FileError(
          fmt::format("{}: value {} is {}; expected finite numbers", what, bad->place, bad->value));
    }
    apply_draw(draw, spec_.inputs[0], values, sample.inputs[0]);
    const std::int32_t label = this->label(index);
    std::memcpy(sample.target.data(), &label, sizeof label);
  }
  std::int32_t label(std::int64_t index) const override {
    return static_cast<std::int32_t>(shards_->value(index));
  }
  std::uint64_t fingerprint(std::int64_t index) const override {
    const std::vector<std::byte> record = shards_->read(index);
    return hash_name({reinterpret_cast<const char*>(record.data()), record.size()});
  }

 private:
  std::span<const std::byte> values_of(const Example& example, const std::string& what) const {
    const TensorSpec& input = spec_.inputs[0];
    const std::optional<Feature> found = example.find(image_.name);
    const bool is_floats =
        input.dtype == DType::kF32 && found && found->kind == FeatureKind::kFloats;
    const Feature feature =
        is_floats ? *found : require_feature(example, image_, FeatureKind::kBytes, what);
    const auto bytes = is_floats ? std::as_bytes(feature.floats) : feature.bytes;
    if (bytes.size() == input.size_bytes() && (is_floats || feature.count == 1)) return bytes;
    throw UsageError(
        fmt::format("--raw-shape: {} {} are {} bytes; the feature {} of {} has {} in {} value{}{}",
                    to_string(input.shape), name(input.dtype), input.size_bytes(), image_.name,
                    what, bytes.size(), feature.count, feature.count == 1 ? "" : "s",
                    feature.count == 1 ? fitting_shape(input, bytes.size()) : ""));
  }

  std::shared_ptr<const RecordShards> shards_;
  FeatureName image_;
  SampleSpec spec_;
};

}  // namespace

TensorSpec parse_raw_shape(const std::string& text) {
  TensorSpec spec{.name = "x", .dtype = DType::kU8, .shape = {}};
  std::string_view rest = text;
  bool is_good = false;
  for (const auto& [type, dtype] : kValueTypes) {
    if (!rest.ends_with(fmt::format(":{}", type))) continue;
    spec.dtype = dtype;
    rest.remove_suffix(1 + type.size());
    is_good = true;
    break;
  }
  std::size_t elements = 1;
  while (is_good) {
    std::int64_t extent = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), extent);
    is_good = error == std::errc() && extent >= 1 &&
              static_cast<std::size_t>(extent) <= kMostSampleBytes / elements;
    if (!is_good) break;
    elements *= static_cast<std::size_t>(extent);
    spec.shape.push_back(extent);
    rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
    if (rest.empty()) break;
    is_good = rest.front() == 'x';
    rest.remove_prefix(1);
  }
  if (is_good && (spec.shape.size() == 1 || spec.shape.size() == 3) &&
      spec.size_bytes() <= kMostSampleBytes) {
    return spec;
  }
  throw UsageError(
      fmt::format("--raw-shape {}: expected HxWxC:TYPE or F:TYPE with u8, u16 or f32, such as "
                  "64x64x4:u16, of at "
                  "most 256 MB",
                  text.empty() ? "''" : text));
}

std::unique_ptr<Dataset> make_record_values(std::shared_ptr<const RecordShards> shards,
                                            const FeatureName& image, const TensorSpec& input,
                                            int num_classes) {
  return std::make_unique<RecordValues>(std::move(shards), image, input, num_classes);
}

}  // namespace syncopate
