// The data set synthetic:CxHxW:CLASSES[:SAMPLES]: a coarse pattern per class plus noise per sample.
// It is cheap to make, so that a benchmark measures the machine and not the reader, and easy to
// learn, so that the loss falls.
#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "models/base/errors.h"
#include "models/base/random.h"
#include "worker/input/dataset.h"

namespace syncopate {
namespace {

constexpr std::int64_t kDefaultTrainSamples = 50000;
constexpr std::int64_t kDefaultTestSamples = 10000;
constexpr std::int64_t kCells = 4;                // the pattern is kCells x kCells, stretched
constexpr std::int64_t kLargestSide = 4096;       // of an image, in pixels
constexpr std::int64_t kMostSamples = 100000000;  // in each split
constexpr std::int64_t kMostClasses = 100000;
constexpr std::int64_t kMostBytesInMemory = 1 << 28;  // bytes of the pattern table
constexpr std::uint32_t kNoisePlaces = 1 << 16;  // places where the noise of a sample may start

struct Layout {
  std::int64_t channels, height, width, classes;
  std::int64_t train_samples = kDefaultTrainSamples;
  std::int64_t test_samples = kDefaultTestSamples;
};

// The pattern and noise tables that both splits share; immutable.
struct Tables {
  Layout layout;
  std::vector<std::uint8_t>
      rows;  // [classes, kCells, W, C]: a row of each band of the pattern, 0 .. 127
  std::vector<std::uint8_t> noise;  // [H * W * C + kNoisePlaces], 0 .. 127
};

std::shared_ptr<const Tables> make_tables(const Layout& layout, std::uint64_t seed) {
  auto tables = std::make_shared<Tables>();
  tables->layout = layout;
  const RandomStream levels(seed, hash_name("synthetic pattern"));
  for (std::int64_t row = 0; row < layout.classes * kCells; ++row) {
    for (std::int64_t x = 0; x < layout.width; ++x) {
      for (std::int64_t c = 0; c < layout.channels; ++c) {
        const std::int64_t cell = row * kCells + x * kCells / layout.width;
        const std::uint32_t bits =
            levels.bits(static_cast<std::uint64_t>(cell * layout.channels + c));
        tables->rows.push_back(static_cast<std::uint8_t>(bits >> 25));
      }
    }
  }
  const RandomStream noise(seed, hash_name("synthetic noise"));
  const auto bytes = static_cast<std::size_t>(layout.height * layout.width * layout.channels);
  tables->noise.resize(bytes + kNoisePlaces);
  for (std::size_t i = 0; i < tables->noise.size(); ++i) {
    tables->noise[i] = static_cast<std::uint8_t>(noise.bits(i) >> 25);
  }
  return tables;
}

class SyntheticDataset final : public Dataset {
 public:
  SyntheticDataset(std::shared_ptr<const Tables> tables, std::int64_t size, RandomStream draws)
      : tables_(std::move(tables)),
        size_(size),
        draws_(draws),
        spec_(classified_samples(
            {tables_->layout.height, tables_->layout.width, tables_->layout.channels},
            static_cast<int>(tables_->layout.classes))) {}

  std::int64_t size() const noexcept override { return size_; }
  const SampleSpec& spec() const noexcept override { return spec_; }

  void read(std::int64_t index, const Draw& draw, const SampleView& sample) const override {
    const std::span<std::byte> pixels = sample.inputs[0];
    check(pixels.size() == spec_.inputs[0].size_bytes(), "a sample of another size");
    const std::int32_t label =
        render({reinterpret_cast<std::uint8_t*>(pixels.data()), pixels.size()}, index);
    apply_draw(draw, spec_.inputs[0], pixels, pixels);
    std::memcpy(sample.target.data(), &label, sizeof label);
  }
  std::int32_t label(std::int64_t index) const override { return label_of(words_of(index)); }
  // The hash of the pixels, which are not stored: tasks with other patterns must differ.
  std::uint64_t fingerprint(std::int64_t index) const override {
    std::vector<std::uint8_t> pixels(spec_.inputs[0].size_bytes());
    render(pixels, index);
    return hash_name({reinterpret_cast<const char*>(pixels.data()), pixels.size()});
  }

 private:
  using Words = std::array<std::uint32_t, 4>;

  Words words_of(std::int64_t index) const {
    check(index >= 0 && index < size_, "a sample outside the data set");
    return draws_.block(static_cast<std::uint64_t>(index));
  }
  std::int32_t label_of(const Words& words) const {
    const auto classes = static_cast<std::uint64_t>(tables_->layout.classes);
    return static_cast<std::int32_t>((std::uint64_t{words[0]} * classes) >> 32);
  }
  // Fills pixels [H * W * C] and returns the label.
  std::int32_t render(std::span<std::uint8_t> pixels, std::int64_t index) const {
    const Layout& layout = tables_->layout;
    const auto row_bytes = static_cast<std::size_t>(layout.width * layout.channels);
    const Words words = words_of(index);
    const std::int32_t label = label_of(words);
    const std::uint8_t* noise = tables_->noise.data() + words[1] % kNoisePlaces;
    std::uint8_t* target = pixels.data();
    for (std::int64_t y = 0; y < layout.height; ++y) {
      const std::int64_t band = label * kCells + y * kCells / layout.height;
      const std::uint8_t* pattern =
          tables_->rows.data() + static_cast<std::size_t>(band) * row_bytes;
      for (std::size_t i = 0; i < row_bytes; ++i) {
        target[i] = static_cast<std::uint8_t>(pattern[i] + noise[i]);
      }
      target += row_bytes;
      noise += row_bytes;
    }
    return label;
  }

  std::shared_ptr<const Tables> tables_;
  std::int64_t size_;
  RandomStream draws_;
  SampleSpec spec_;
};

// Parses the sizes after "synthetic:", such as "3x32x32:10" or "3x32x32:10:640".
Layout parse_layout(std::string_view argument) {
  constexpr std::size_t kAlways = 4;
  std::array<std::int64_t, kAlways + 1> numbers{};
  constexpr std::array<char, kAlways + 1> kBefore = {'\0', 'x', 'x', ':', ':'};
  constexpr std::array<std::int64_t, kAlways + 1> kLargest = {
      kLargestSide, kLargestSide, kLargestSide, kMostClasses, kMostSamples};
  const char* at = argument.data();
  const char* const end = at + argument.size();
  bool good = true;
  std::size_t found = 0;
  for (; good && found < numbers.size() && (found < kAlways || at != end); ++found) {
    if (kBefore[found] != '\0' && (at == end || *at++ != kBefore[found])) good = false;
    const auto parsed = std::from_chars(at, end, numbers[found]);
    at = parsed.ptr;
    good = good && parsed.ec == std::errc() && numbers[found] >= 1 &&
           numbers[found] <= kLargest[found];
  }
  good = good && at == end;
  Layout layout{numbers[0], numbers[1], numbers[2], numbers[3]};
  if (found > kAlways) layout.train_samples = layout.test_samples = numbers[kAlways];
  good = good && layout.channels * layout.height * layout.width <= kMostBytesInMemory &&
         layout.classes * kCells * layout.width * layout.channels <= kMostBytesInMemory;
  if (!good) {
    throw UsageError(fmt::format(
        "synthetic: '{}'; expected CxHxW:CLASSES or CxHxW:CLASSES:SAMPLES with sides of 1 to 4096 "
        "pixels, in 256 MB, such as synthetic:3x32x32:10",
        argument));
  }
  return layout;
}

}  // namespace

DataSplits open_synthetic(std::string_view argument, const DataOptions& options) {
  const Layout layout = parse_layout(argument);
  const auto tables = make_tables(layout, options.seed);
  const auto split = [&](std::string_view name, std::int64_t size) {
    return std::make_unique<SyntheticDataset>(tables, size,
                                              RandomStream(options.seed, hash_name(name)));
  };
  const auto channels = static_cast<std::size_t>(layout.channels);
  // The sum of two uniform numbers in 0 .. 127: mean 127 / 255, deviation sqrt(2 / 12) * 128 / 255.
  return {.name = "synthetic",
          .train = split("synthetic train", layout.train_samples),
          .test = split("synthetic test", layout.test_samples),
          .mean = std::vector<float>(channels, 0.498F),
          .stddev = std::vector<float>(channels, 0.205F),
          .suits_crop_flip = false};
}

}  // namespace syncopate
