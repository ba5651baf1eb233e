// CUDA kernels on the CPU: the sources of models/backend/cuda/kernels/ are compiled as plain C++
// with this header put in front (-include) and `__shared__` defined as `static`, and launch() runs
// the grid in the calling thread, block after block. The threads of a block run one after another
// until they end or reach a barrier; only then does the next one run, on a stack of its own. So a
// block with a barrier missing, or blocks that wait for one another, give other bits when the order
// is turned round, or do not end.
//
// What is here is what our kernels use: threadIdx, blockIdx, gridDim, __syncthreads(). Memory is
// the CPU's; a misaligned 16-byte access or an index outside of an array ends the program
// (CMakeLists.txt asks for the sanitizer's trap). What it cannot show: speed, too many registers.
//
// One thread only; the words of CUDA are global by nature.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>

#include "models/backend/cuda/kernels/launch.h"
#include "tests/models/backend/cuda/emulated_stream.h"

// NOLINTBEGIN(readability-identifier-naming,bugprone-reserved-identifier): CUDA's words
extern uint3 threadIdx;
extern uint3 blockIdx;
extern dim3 gridDim;
void __syncthreads();
// NOLINTEND(readability-identifier-naming,bugprone-reserved-identifier)

namespace syncopate::cuda {

enum class EmulatedOrder { kForward, kBackward };  // of the blocks, and of the threads in each

// Of every grid started while it lives; forward without one. Not nested.
class EmulatedOrderScope {
 public:
  explicit EmulatedOrderScope(EmulatedOrder order);
  ~EmulatedOrderScope();
  EmulatedOrderScope(const EmulatedOrderScope&) = delete;
  EmulatedOrderScope& operator=(const EmulatedOrderScope&) = delete;
};

// Throws DeviceError for a grid that a device would refuse, InternalError when some threads of a
// block wait at a barrier that others never reach.
void run_emulated_grid(const Launch& how, const std::function<void()>& thread);

template <typename... Parameters, typename... Arguments>
void launch(const Launch& how, void (*kernel)(Parameters...), const Arguments&... arguments) {
  do_or_record(how.stream,
               [=] { run_emulated_grid(how, [&] { kernel(Parameters(arguments)...); }); });
}

}  // namespace syncopate::cuda
