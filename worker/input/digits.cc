// The data set `digits`: 60,000 + 10,000 drawn digits. The first process renders them into a cache
// file, which later processes map.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "models/base/errors.h"
#include "models/base/log.h"
#include "worker/input/dataset.h"
#include "worker/input/digit_painter.h"
#include "worker/input/pixel_cache.h"

namespace syncopate {
namespace {

// Part of the cache file's name and header; raise this version when a pixel of a digit changes.
constexpr std::uint32_t kVersion = 1;
constexpr const char* kCacheName = "digits-v1.u8";
constexpr std::uint64_t kSeed =
    20240229;  // the data set's own seed, independent of the seed of the run
constexpr std::uint32_t kTrainSamples = 60000;
constexpr std::uint32_t kTestSamples = 10000;
constexpr std::uint32_t kSamples = kTrainSamples + kTestSamples;
constexpr std::size_t kImageBytes = DigitPainter::kPixels;

// The payload of the cache file: all images, train before test, then all labels.
constexpr std::size_t kLabelsAt = kSamples * kImageBytes;
constexpr std::size_t kPayloadBytes = kLabelsAt + kSamples;
constexpr PixelCacheKey kCacheKey{kVersion, kPayloadBytes};

// Drawing takes about 2 s of one core. `options.on_progress` is called until all threads end.
std::vector<std::uint8_t> render(const DataOptions& options) {
  std::vector<std::uint8_t> payload(kPayloadBytes);
  const DigitPainter painter(kSeed);
  std::atomic<std::uint32_t> done = 0;
  const auto render_range = [&](std::uint32_t begin, std::uint32_t end) {
    for (std::uint32_t i = begin; i < end; ++i) {
      const bool train = i < kTrainSamples;
      const auto pixels = std::span(payload).subspan(i * kImageBytes, kImageBytes);
      payload[kLabelsAt + i] = static_cast<std::uint8_t>(
          painter.paint(train ? 0 : 1, train ? i : i - kTrainSamples, pixels));
      ++done;
    }
  };
  const std::uint32_t threads = std::clamp(std::thread::hardware_concurrency(), 1U, 16U);
  std::vector<std::jthread> renderers;
  for (std::uint32_t t = 0; t < threads; ++t) {
    const auto border = [&](std::uint32_t k) {
      return static_cast<std::uint32_t>(std::uint64_t{kSamples} * k / threads);
    };
    renderers.emplace_back(render_range, border(t), border(t + 1));
  }
  if (options.on_progress) {
    constexpr std::chrono::milliseconds kTick(20);
    for (std::uint32_t now = 0; now < kSamples; std::this_thread::sleep_for(kTick)) {
      options.on_progress(now = done, kSamples);
    }
  }
  renderers.clear();  // joins the rendering threads
  return payload;
}

MappedPayload in_memory(std::vector<std::uint8_t> payload) {
  auto owned = std::make_shared<std::vector<std::uint8_t>>(std::move(payload));
  return {*owned, owned};
}

MappedPayload map_or_render(const DataOptions& options) {
  const std::filesystem::path& cache_dir = options.cache_dir;
  if (cache_dir.empty()) return in_memory(render(options));
  const std::filesystem::path path = cache_dir / kCacheName;
  if (const auto mapped = map_pixel_cache(path, kCacheKey)) return *mapped;
  std::vector<std::uint8_t> payload = render(options);
  try {
    write_pixel_cache(path, kCacheKey, payload);
  } catch (const FileError& error) {
    log(LogLevel::kWarning,
        std::string("the digits are drawn again in the next run: ") + error.what());
    return in_memory(std::move(payload));
  }
  // Uses the mapped file: processes of this machine share it, but not the rendered copy.
  if (const auto mapped = map_pixel_cache(path, kCacheKey)) return *mapped;
  return in_memory(std::move(payload));
}

}  // namespace

DataSplits open_digits(std::string_view /*argument*/, const DataOptions& options) {
  const MappedPayload payload = map_or_render(options);
  const auto split = [&](std::size_t first, std::size_t count) {
    return make_memory_dataset({payload.bytes.subspan(first * kImageBytes, count * kImageBytes),
                                payload.bytes.subspan(kLabelsAt + first, count), payload.memory},
                               {DigitPainter::kSide, DigitPainter::kSide, 1}, 10);
  };
  return {.name = "digits",
          .train = split(0, kTrainSamples),
          .test = split(kTrainSamples, kTestSamples),
          .mean = {0.1222F},  // mean pixel of the training images
          .stddev = {0.2384F},
          .suits_crop_flip = false};
}

}  // namespace syncopate
