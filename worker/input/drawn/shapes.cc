// The data set `shapes`: 6,000 + 1,000 pictures of discs and bars on noise, with a class for each
// pixel. Drawn with whole numbers, so the pictures have the same bits on every machine.
#include <algorithm>
#include <array>
#include <cstring>
#include <utility>
#include <vector>

#include "models/base/errors.h"
#include "models/base/random.h"
#include "worker/input/dataset.h"
#include "worker/input/drawn/drawn_samples.h"

namespace syncopate {
namespace {

constexpr int kSide = 64;  // pixels
constexpr int kPixels = kSide * kSide;
constexpr int kChannels = 3;
constexpr int kClasses = 3;
constexpr std::uint8_t kDisc = 1;
constexpr std::uint8_t kBar = 2;

// 256 times cosine and sine of k * pi / 16.
constexpr std::array kCosines = {256, 251, 237, 213,  181,  142,  98,   50,
                                 0,   -50, -98, -142, -181, -213, -237, -251};
constexpr int cosine(int k) { return kCosines[static_cast<std::size_t>(k)]; }
constexpr int sine(int k) { return k < 8 ? -cosine(k + 8) : cosine(k - 8); }

// The numbers of one picture, drawn one after the other.
class Numbers {
 public:
  Numbers(std::uint64_t seed, std::uint32_t picture) : random_(seed, picture) {}
  // Returns a number from `least` to `most`.
  int between(int least, int most) {
    return least +
           static_cast<int>(random_.below(next_++, static_cast<std::uint32_t>(most - least + 1)));
  }

 private:
  const RandomStream random_;
  std::uint64_t next_ = 0;
};

using Colour = std::array<int, kChannels>;

struct Object {
  std::uint8_t kind = kDisc;
  int x = 0;
  int y = 0;
  int radius = 0;     // of a disc
  int direction = 0;  // of a bar, in pi / 16
  int length = 0;     // half of it
  int thickness = 0;  // half of it
  Colour colour{};

  bool covers(int px, int py) const {
    const int dx = px - x;
    const int dy = py - y;
    if (kind == kDisc) return dx * dx + dy * dy <= radius * radius;
    const int along = dx * cosine(direction) + dy * sine(direction);
    const int across = dy * cosine(direction) - dx * sine(direction);
    return std::abs(along) <= 256 * length && std::abs(across) <= 256 * thickness;
  }
};

Object draw_object(Numbers& numbers, const Colour& background) {
  Object object{.kind = numbers.between(0, 1) == 0 ? kDisc : kBar,
                .x = numbers.between(8, kSide - 9),
                .y = numbers.between(8, kSide - 9),
                .radius = numbers.between(8, 15),
                .direction = numbers.between(0, 15),
                .length = numbers.between(16, 26),
                .thickness = numbers.between(3, 5)};
  for (std::size_t c = 0; c < object.colour.size(); ++c) {
    const int contrast = numbers.between(60, 110);
    object.colour[c] = background[c] + (numbers.between(0, 1) == 0 ? contrast : -contrast);
  }
  return object;
}

void draw_picture(std::uint64_t seed, std::uint32_t index, std::span<std::uint8_t> image,
                  std::span<std::uint8_t> labels) {
  constexpr std::uint64_t kNoise = std::uint64_t{1} << 32;  // behind the streams of the numbers
  constexpr int kNoiseWidth = 49;                           // values, around 0
  Numbers numbers(seed, index);
  Colour background{};
  for (int& value : background) value = numbers.between(60, 190);
  std::vector<Object> objects(static_cast<std::size_t>(numbers.between(1, 3)));
  for (Object& object : objects) object = draw_object(numbers, background);
  const RandomStream noise(seed, kNoise + index);
  for (int p = 0; p < kPixels; ++p) {
    const Colour* colour = &background;
    std::uint8_t label = 0;
    for (const Object& object : objects) {
      if (!object.covers(p % kSide, p / kSide)) continue;
      colour = &object.colour;
      label = object.kind;
    }
    const std::uint32_t bits = noise.bits(static_cast<std::uint64_t>(p));
    const auto at = static_cast<std::size_t>(p);
    labels[at] = label;
    for (std::size_t c = 0; c < kChannels; ++c) {
      const int byte = static_cast<int>(bits >> (8 * c) & 0xFF);
      const int value = (*colour)[c] + (byte * kNoiseWidth >> 8) - kNoiseWidth / 2;
      image[at * kChannels + c] = static_cast<std::uint8_t>(std::clamp(value, 0, 255));
    }
  }
}

class ShapesDataset final : public Dataset {
 public:
  ShapesDataset(std::span<const std::uint8_t> images, std::span<const std::uint8_t> labels,
                std::shared_ptr<const void> memory)
      : images_(images),
        labels_(labels),
        memory_(std::move(memory)),
        spec_(mapped_samples({kSide, kSide, kChannels}, kClasses)) {}

  std::int64_t size() const noexcept override {
    return static_cast<std::int64_t>(labels_.size()) / kPixels;
  }
  const SampleSpec& spec() const noexcept override { return spec_; }

  void read(std::int64_t index, const Draw& draw, const SampleView& sample) const override {
    apply_draw(draw, spec_.inputs[0], std::as_bytes(image(index)), sample.inputs[0]);
    std::array<std::int32_t, kPixels> wide{};
    std::ranges::copy(labels(index), wide.begin());
    apply_draw_to_labels(draw, kSide, kSide, wide);
    std::memcpy(sample.target.data(), wide.data(), sizeof wide);
  }
  std::int32_t label(std::int64_t index) const override {
    std::array<int, kClasses> counts{};
    for (const std::uint8_t each : labels(index)) ++counts.at(each);
    return static_cast<std::int32_t>(std::ranges::max_element(counts) - counts.begin());
  }
  std::uint64_t fingerprint(std::int64_t index) const override {
    const auto hash = [](std::span<const std::uint8_t> bytes) {
      return hash_name({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    };
    return hash(image(index)) ^ ~hash(labels(index));
  }

 private:
  std::span<const std::uint8_t> image(std::int64_t index) const {
    return part(images_, index, kPixels * kChannels);
  }
  std::span<const std::uint8_t> labels(std::int64_t index) const {
    return part(labels_, index, kPixels);
  }
  std::span<const std::uint8_t> part(std::span<const std::uint8_t> all, std::int64_t index,
                                     std::size_t bytes) const {
    check(index >= 0 && index < size(), "a sample outside the data set");
    return all.subspan(static_cast<std::size_t>(index) * bytes, bytes);
  }

  const std::span<const std::uint8_t> images_;
  const std::span<const std::uint8_t> labels_;
  const std::shared_ptr<const void> memory_;
  const SampleSpec spec_;
};

}  // namespace

DataSplits open_shapes(std::string_view /*argument*/, const DataOptions& options) {
  constexpr std::uint64_t kSeed = 20261127;  // independent of the seed of the run
  constexpr std::uint32_t kTrain = 6000;
  constexpr std::uint32_t kTest = 1000;
  const DrawnSet set{
      .name = "shapes",
      .file_name = "shapes-v1.u8",
      .version = 1,
      .samples = kTrain + kTest,
      .image_bytes = kPixels * kChannels,
      .label_bytes = kPixels,
      .draw = [](std::uint32_t index, std::span<std::uint8_t> image,
                 std::span<std::uint8_t> labels) { draw_picture(kSeed, index, image, labels); }};
  const MappedPayload payload = map_or_draw(set, options);
  const auto split = [&](std::size_t first, std::size_t count) {
    return std::make_unique<ShapesDataset>(
        payload.bytes.subspan(first * set.image_bytes, count * set.image_bytes),
        payload.bytes.subspan(set.labels_at() + first * set.label_bytes, count * set.label_bytes),
        payload.memory);
  };
  return {.name = "shapes",
          .train = split(0, kTrain),
          .test = split(kTrain, kTest),
          .mean = {0.4904F, 0.4932F, 0.4922F},  // of the training images
          .stddev = {0.2039F, 0.2036F, 0.2042F},
          .class_names = {"background", "disc", "bar"},
          .suits_crop_flip = true};
}

}  // namespace syncopate
