// The data set `digits`: 60,000 + 10,000 drawn digits.
#include "worker/input/dataset.h"
#include "worker/input/drawn/digit_painter.h"
#include "worker/input/drawn/drawn_samples.h"

namespace syncopate {

DataSplits open_digits(std::string_view /*argument*/, const DataOptions& options) {
  constexpr std::uint64_t kSeed =
      20240229;  // the data set's own seed, independent of the seed of the run
  constexpr std::uint32_t kTrain = 60000;
  constexpr std::uint32_t kTest = 10000;
  constexpr std::size_t kImageBytes = DigitPainter::kPixels;
  const DigitPainter painter(kSeed);
  // Drawing takes about 2 s of one core.
  const DrawnSet set{.name = "digits",
                     .file_name = "digits-v1.u8",
                     .version = 1,
                     .samples = kTrain + kTest,
                     .image_bytes = kImageBytes,
                     .draw = [&painter](std::uint32_t index, std::span<std::uint8_t> image,
                                        std::span<std::uint8_t> label) {
                       const bool train = index < kTrain;
                       label[0] = static_cast<std::uint8_t>(
                           painter.paint(train ? 0 : 1, train ? index : index - kTrain, image));
                     }};
  const MappedPayload payload = map_or_draw(set, options);
  const auto split = [&](std::size_t first, std::size_t count) {
    return make_memory_dataset(
        {payload.bytes.subspan(first * kImageBytes, count * kImageBytes),
         payload.bytes.subspan(set.labels_at() + first, count), payload.memory},
        {DigitPainter::kSide, DigitPainter::kSide, 1}, 10);
  };
  return {.name = "digits",
          .train = split(0, kTrain),
          .test = split(kTrain, kTest),
          .mean = {0.1222F},  // mean pixel of the training images
          .stddev = {0.2384F},
          .suits_crop_flip = false};
}

}  // namespace syncopate
