// Tests the kernel of dropout: its masks have the bits of models/base/random.h.

#include "models/backend/cuda/kernels/cuda_kernels.h"
#include "models/base/random.h"
#include "tests/models/backend/cuda/device_array.h"
#include "tests/models/backend/cuda/kernel_case.h"

namespace syncopate::cuda {
namespace {

constexpr cudaStream_t kStream = nullptr;

template <typename T>
class DropoutKernels : public testing::Test {};
TYPED_TEST_SUITE(DropoutKernels, ElementTypes);

TYPED_TEST(DropoutKernels, DrawTheNumbersOfEachSamplesKey) {
  using T = TypeParam;
  const std::vector<std::uint64_t> keys = {1, 0xFEDCBA9876543210U, 1U << 31};
  for (const std::int64_t elements : {1, 3, 4, 7, 1028, 5003}) {
    for (const std::int64_t offset : {0, 1}) {
      for (const bool in_place : {false, true}) {
        const DropoutOp op{.rate = 0.3F};
        const Dropout how{3, elements, hash_name("drop"), op.threshold(), op.scale()};
        const Values values = draw<T>(how.n * elements, 1);
        Values expected;
        for (std::int64_t i = 0; i < how.n * elements; ++i) {
          const RandomStream random(keys[static_cast<std::size_t>(i / elements)], how.stream);
          const bool is_kept = random.bits(static_cast<std::uint64_t>(i % elements)) >=
                               static_cast<std::uint32_t>(0.3F * 4294967296.0);
          expected.push_back(is_kept ? values[static_cast<std::size_t>(i)] / (1.0 - 0.3) : 0.0);
        }
        const auto found = run_in_every_order([&] {
          DeviceArray<T> x(values, offset);
          DeviceArray<T> other(how.n * elements, offset);
          DeviceArray<T>& y = in_place ? x : other;
          dropout(how, keys.data(), x.data(), y.data(), kStream);
          return Outputs{y.values()};
        });
        expect_close<T>(expected, found[0], 2, 1.5);
      }
    }
  }
}

TYPED_TEST(DropoutKernels, DoNothingWithoutSamples) {
  DeviceArray<TypeParam> none(0);
  dropout({.n = 0, .elements = 7}, nullptr, none.data(), none.data(), kStream);
}

}  // namespace
}  // namespace syncopate::cuda
