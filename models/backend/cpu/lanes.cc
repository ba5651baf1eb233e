#include "models/backend/cpu/lanes.h"

#include <fmt/format.h>

#include <algorithm>

#include "models/base/denormals.h"
#include "models/base/errors.h"

// A function of libgomp, which oneDNN links. It is declared here because clang's tools do not find
// GCC's omp.h.
extern "C" void omp_set_num_threads(int count);

namespace syncopate {
namespace {

int check_lane_count(int count) {
  if (count < 1 || count > 1024) {
    throw UsageError(fmt::format("--threads {}: expected 1 to 1024 lanes", count));
  }
  return count;
}

}  // namespace

LanePool::LanePool(int count) : team_(check_lane_count(count), "lane") {}

void LanePool::run(const std::function<void(int)>& task) {
  team_.run([&task](int lane) {
    // The number of OpenMP threads is a setting of the calling thread, which new threads do not
    // inherit. Setting it costs one store.
    omp_set_num_threads(1);
    const FlushDenormals flush;
    task(lane);
  });
}

Share share_of(std::int64_t count, int part, int parts, std::int64_t granule) {
  const std::int64_t granules = (count + granule - 1) / granule;
  const auto border = [&](int i) { return std::min(count, granules * i / parts * granule); };
  return {border(part), border(part + 1)};
}

}  // namespace syncopate
