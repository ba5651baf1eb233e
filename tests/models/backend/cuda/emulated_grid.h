// Runs CUDA kernels on the CPU. The sources of models/backend/cuda/kernels/ are compiled as plain
// C++ with this header included first (-include) and `__shared__` defined as `static`; launch()
// runs the grid in the calling thread, block after block. The threads of a block run one after
// another: the next one runs, on a stack of its own, when the last one ends or reaches a barrier.
// So a missing barrier, or blocks that depend on each other, give other bits in the reverse order,
// or do not end.
//
// The header defines the parts of CUDA that our kernels use: threadIdx, blockIdx, gridDim,
// __syncthreads(). Memory is the CPU's; a misaligned 16-byte access or an index outside an array
// ends the program (CMakeLists.txt enables the sanitizer's trap). The emulation shows neither speed
// nor the use of registers.
//
// One thread only; CUDA's names are global by definition.
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

// The order in which an emulated grid runs its blocks, and each block its threads.
enum class EmulatedOrder { kForward, kBackward };

// Sets the order of every grid that is started while the object lives; the default is forward.
// Scopes must not be nested.
class EmulatedOrderScope {
 public:
  explicit EmulatedOrderScope(EmulatedOrder order);
  ~EmulatedOrderScope();
  EmulatedOrderScope(const EmulatedOrderScope&) = delete;
  EmulatedOrderScope& operator=(const EmulatedOrderScope&) = delete;
};

// Runs a kernel. Throws DeviceError for a grid that a device would refuse, InternalError if some
// threads of a block wait at a barrier that the others never reach.
void run_emulated_grid(const Launch& how, const std::function<void()>& thread);

template <typename... Parameters, typename... Arguments>
void launch(const Launch& how, void (*kernel)(Parameters...), const Arguments&... arguments) {
  do_or_record(how.stream,
               [=] { run_emulated_grid(how, [&] { kernel(Parameters(arguments)...); }); });
}

}  // namespace syncopate::cuda
