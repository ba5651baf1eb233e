#include "models/backend/cpu/lanes.h"

#include <algorithm>
#include <string>

#include "models/base/denormals.h"
#include "models/base/errors.h"

// Of libgomp, which oneDNN links. Its header is GCC's own and clang's tools do not find it.
extern "C" void omp_set_num_threads(int count);

namespace syncopate {
namespace {

int checked(int count) {
  if (count < 1 || count > 1024) {
    throw UsageError("--threads " + std::to_string(count) + ": expected 1 to 1024 lanes");
  }
  return count;
}

}  // namespace

LanePool::LanePool(int count) : team_(checked(count), "lane") {}

void LanePool::run(const std::function<void(int)>& task) {
  team_.run([&task](int lane) {
    // Every thread has to say it, since new ones ignore what main set; it is one store.
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
