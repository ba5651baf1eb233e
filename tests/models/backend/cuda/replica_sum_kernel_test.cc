#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "models/backend/cuda/kernels/cuda_kernels.h"
#include "models/base/isa.h"
#include "models/tensor/sums.h"
#include "tests/models/backend/cuda/device_array.h"
#include "tests/models/backend/cuda/kernel_case.h"

namespace syncopate::cuda {
namespace {

constexpr std::int64_t kElements = 2 * kBlockElements + 77;

// Returns the sums that the collectives `local` and `ring` compute on the host.
Values summed_on_the_host(const std::vector<Values>& replicas, std::int64_t begin,
                          std::int64_t end) {
  const int n = static_cast<int>(replicas.size());
  std::vector<std::vector<float>> slices;
  std::vector<float*> pointers;
  slices.reserve(replicas.size());
  pointers.reserve(replicas.size());
  for (const Values& values : replicas) slices.emplace_back(values.begin(), values.end());
  for (std::vector<float>& slice : slices) pointers.push_back(slice.data());
  for (std::int64_t from = begin; from < end;) {
    const std::int64_t to = std::min((from / kBlockElements + 1) * kBlockElements, end);
    sum_kernels(detect_isa())
        .sum_to_all_f32(pointers.data(), n, first_addend(from, n), from, to - from);
    from = to;
  }
  return {slices.front().begin(), slices.front().end()};
}

// With an offset of 1, the arenas are not aligned to 16 bytes.
Outputs summed_on_the_device(const std::vector<Values>& replicas, std::int64_t begin,
                             std::int64_t end, std::int64_t offset) {
  std::vector<std::unique_ptr<DeviceArray<float>>> arenas;
  ReplicaSlices slices{.count = static_cast<int>(replicas.size())};
  for (std::size_t r = 0; r < replicas.size(); ++r) {
    arenas.push_back(std::make_unique<DeviceArray<float>>(replicas[r], offset));
    slices.arenas[r] = arenas.back()->data();
  }
  sum_replicas(slices, begin, end - begin, nullptr);
  Outputs found;
  for (const auto& arena : arenas) found.push_back(arena->values());
  return found;
}

TEST(ReplicaSum, HasTheBitsOfTheCollectivesOnTheHostInEveryReplica) {
  for (const std::size_t n : {1U, 2U, 3U, 5U, 32U}) {
    SCOPED_TRACE(std::to_string(n) + " replicas");
    std::vector<Values> replicas;
    for (std::size_t r = 0; r < n; ++r) replicas.push_back(draw<float>(kElements, r));
    const Values expected = summed_on_the_host(replicas, 0, kElements);
    const Outputs found =
        run_in_every_order([&] { return summed_on_the_device(replicas, 0, kElements, 0); });
    expect_same_bits(Outputs(n, expected), found);
  }
}

TEST(ReplicaSum, LeavesAloneWhatIsNotOfItsBucket) {
  const std::vector<Values> replicas{draw<float>(kElements, 1), draw<float>(kElements, 2),
                                     draw<float>(kElements, 3)};
  for (const std::int64_t offset : {0, 1}) {
    for (const std::int64_t begin : {64, 65}) {
      const std::int64_t end = kBlockElements + 130;
      const Values expected = summed_on_the_host(replicas, begin, end);
      const Outputs found = summed_on_the_device(replicas, begin, end, offset);
      for (std::size_t r = 0; r < replicas.size(); ++r) {
        for (std::int64_t i = 0; i < kElements; ++i) {
          const auto at = static_cast<std::size_t>(i);
          const double right = i >= begin && i < end ? expected[at] : replicas[r][at];
          ASSERT_EQ(found[r][at], right) << "replica " << r << ", element " << i;
        }
      }
    }
  }
}

}  // namespace
}  // namespace syncopate::cuda
