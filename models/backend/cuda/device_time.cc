#include "models/backend/cuda/device_time.h"

#include "models/backend/cuda/captured_work.h"
#include "models/backend/cuda/device.h"
#include "models/backend/cuda/errors.h"

namespace syncopate::cuda {
namespace {

StreamEvent make_timed_event() {
  cudaEvent_t made = nullptr;
  check_cuda(cudaEventCreate(&made));
  return StreamEvent(made);
}

}  // namespace

std::chrono::nanoseconds time_on_device(cudaStream_t stream, int repeats,
                                        const std::function<void()>& work) {
  const StreamEvent begun = make_timed_event();
  const StreamEvent ended = make_timed_event();
  CapturedWork all(/*runs_as_they_come=*/1);
  for (int run = 0; run < 2; ++run) {
    check_cuda(cudaEventRecord(begun.get(), stream));
    all.run(stream, [&] {
      for (int i = 0; i < repeats; ++i) work();
    });
    check_cuda(cudaEventRecord(ended.get(), stream));
  }
  check_cuda(cudaEventSynchronize(ended.get()));
  float milliseconds = 0.0F;  // the time of all repeats together
  check_cuda(cudaEventElapsedTime(&milliseconds, begun.get(), ended.get()));
  const std::chrono::duration<double, std::milli> one(double{milliseconds} / repeats);
  return std::chrono::duration_cast<std::chrono::nanoseconds>(one);
}

}  // namespace syncopate::cuda
