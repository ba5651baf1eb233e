// Tests on a GPU that the time of work contains the device's time only.
#include "models/backend/cuda/device_speed.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "models/backend/cuda/device.h"
#include "models/backend/cuda/kernels/cuda_kernels.h"
#include "tests/models/backend/cuda/device_under_test.h"

namespace syncopate::cuda {
namespace {

using namespace std::chrono_literals;

// A capture of 20 kernels and the graph's first upload take the host some 0.2 ms, which would count
// 10 us for each run; a small kernel takes about 2 us.
TEST(TimeOnDevice, LeavesOutWhatTheHostTakes) {
  if (const auto reason = why_no_device()) GTEST_SKIP() << *reason;
  const Stream stream = make_stream();
  const auto memory = make_device_buffer(2 * 1024 * sizeof(float), 0);
  auto* const from = reinterpret_cast<float*>(memory->data());
  for (int i = 0; i < 5; ++i) {
    const auto time = time_on_device(stream.get(), 20, [&] {
      std::this_thread::sleep_for(100us);  // a slow host
      convert(from, from + 1024, 1024, stream.get());
    });
    EXPECT_GT(time, 100ns);
    EXPECT_LT(time, 10us);
  }
}

}  // namespace
}  // namespace syncopate::cuda
