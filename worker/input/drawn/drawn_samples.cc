#include "worker/input/drawn/drawn_samples.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "models/base/errors.h"
#include "models/base/log.h"
#include "models/base/resource_limits.h"

namespace syncopate {
namespace {

std::vector<std::uint8_t> draw_all(const DrawnSet& set, const DataOptions& options) {
  std::vector<std::uint8_t> payload(set.labels_at() + set.samples * set.label_bytes);
  std::atomic<std::uint32_t> done = 0;
  const auto draw_range = [&](std::uint32_t begin, std::uint32_t end) {
    const std::span<std::uint8_t> all(payload);
    for (std::uint32_t i = begin; i < end; ++i) {
      set.draw(i, all.subspan(i * set.image_bytes, set.image_bytes),
               all.subspan(set.labels_at() + i * set.label_bytes, set.label_bytes));
      ++done;
    }
  };
  const auto threads = static_cast<std::uint32_t>(std::min(usable_cpu_count(), 16));
  std::vector<std::jthread> workers;
  for (std::uint32_t t = 0; t < threads; ++t) {
    const auto border = [&](std::uint32_t k) {
      return static_cast<std::uint32_t>(std::uint64_t{set.samples} * k / threads);
    };
    workers.emplace_back(draw_range, border(t), border(t + 1));
  }
  if (options.on_progress) {
    constexpr std::chrono::milliseconds kTick(20);
    for (std::uint32_t now = 0; now < set.samples; std::this_thread::sleep_for(kTick)) {
      options.on_progress(now = done, set.samples);
    }
  }
  workers.clear();  // joins the threads
  return payload;
}

MappedPayload in_memory(std::vector<std::uint8_t> payload) {
  auto owned = std::make_shared<std::vector<std::uint8_t>>(std::move(payload));
  return {*owned, owned};
}

}  // namespace

MappedPayload map_or_draw(const DrawnSet& set, const DataOptions& options) {
  const PixelCacheKey key{set.version, set.labels_at() + set.samples * set.label_bytes};
  const std::filesystem::path& cache_dir = options.cache_dir;
  if (cache_dir.empty()) return in_memory(draw_all(set, options));
  const std::filesystem::path path = cache_dir / set.file_name;
  if (const auto mapped = map_pixel_cache(path, key)) return *mapped;
  std::vector<std::uint8_t> payload = draw_all(set, options);
  try {
    write_pixel_cache(path, key, payload);
  } catch (const FileError& error) {
    log(LogLevel::kWarning,
        fmt::format("the {} are drawn again in the next run: {}", set.name, error.what()));
    return in_memory(std::move(payload));
  }
  // Uses the mapped file: processes of this machine share it, but not the drawn copy.
  if (const auto mapped = map_pixel_cache(path, key)) return *mapped;
  return in_memory(std::move(payload));
}

}  // namespace syncopate
