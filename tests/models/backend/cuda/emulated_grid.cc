#include "tests/models/backend/cuda/emulated_grid.h"

#include <setjmp.h>
#include <ucontext.h>

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "models/base/errors.h"

uint3 threadIdx;
uint3 blockIdx;
dim3 gridDim;

namespace syncopate::cuda {
namespace {

constexpr std::size_t kStackBytes = 64 * 1024;

EmulatedOrder current_order = EmulatedOrder::kForward;

// A Block runs the threads of one block. A fibre runs one thread after another until one of them
// waits at a barrier; then another fibre continues with the next thread. Without barriers one fibre
// runs all threads in a loop.
class Block {
 public:
  Block(const Launch& how, const std::function<void()>& thread) : how_(how), thread_(thread) {}

  void run();
  void wait_at_barrier();  // is called by a fibre

 private:
  struct Fibre {
    ucontext_t start{};
    bool started = false;
    jmp_buf place{};
    std::unique_ptr<char[]> stack = std::make_unique_for_overwrite<char[]>(kStackBytes);
    unsigned thread = 0;
    bool waits = false;  // true while its thread is at a barrier; false when no thread is left
  };

  static void run_fibre();
  void leave(Fibre& fibre);  // called by the scheduler; returns when the fibre is resumed
  void take_threads();
  void resume(Fibre& fibre);
  Fibre& idle_fibre();

  Launch how_;
  const std::function<void()>& thread_;
  ucontext_t before_{};  // swapcontext() requires it; it is never resumed
  jmp_buf scheduler_{};
  std::vector<std::unique_ptr<Fibre>> fibres_;  // are reused by all blocks
  std::vector<Fibre*> waiting_;                 // is in the order of arrival
  Fibre* running_ = nullptr;
  unsigned started_ = 0;  // counts threads of this block
};

Block* current_block = nullptr;  // global, since makecontext() passes no pointer

void Block::run() {
  started_ = 0;
  waiting_.clear();
  while (started_ < how_.threads) resume(idle_fibre());
  while (!waiting_.empty()) {
    check(waiting_.size() == how_.threads,
          std::string(how_.kernel) +
              ": every thread of a block reaches each barrier, or none does; " +
              std::to_string(waiting_.size()) + " of " + std::to_string(how_.threads) + " did");
    const std::vector<Fibre*> released = std::move(waiting_);
    waiting_.clear();
    for (Fibre* const fibre : released) resume(*fibre);
  }
}

void Block::wait_at_barrier() {
  Fibre& fibre = *running_;
  fibre.waits = true;
  waiting_.push_back(&fibre);
  leave(fibre);
  fibre.waits = false;
}

void Block::run_fibre() {
  while (true) {
    current_block->take_threads();
    current_block->leave(*current_block->running_);
  }
}

void Block::take_threads() {
  Fibre& fibre = *running_;
  while (started_ < how_.threads) {
    const unsigned index = started_++;
    fibre.thread = current_order == EmulatedOrder::kForward ? index : how_.threads - 1 - index;
    threadIdx = {fibre.thread, 0, 0};
    thread_();
  }
}

void Block::resume(Fibre& fibre) {
  running_ = &fibre;
  threadIdx = {fibre.thread, 0, 0};
  // To switch fibres, _setjmp() replaces swapcontext(), which makes a system call for the signal
  // mask each time; only the switch to a new stack needs swapcontext().
  if (_setjmp(scheduler_) != 0) return;
  if (fibre.started) _longjmp(fibre.place, 1);
  fibre.started = true;
  swapcontext(&before_, &fibre.start);
}

void Block::leave(Fibre& fibre) {
  if (_setjmp(fibre.place) == 0) _longjmp(scheduler_, 1);
}

Block::Fibre& Block::idle_fibre() {
  for (std::size_t i = waiting_.size(); i < fibres_.size(); ++i) {
    if (!fibres_[i]->waits) return *fibres_[i];
  }
  Fibre& fibre = *fibres_.emplace_back(std::make_unique<Fibre>());
  getcontext(&fibre.start);
  fibre.start.uc_stack.ss_sp = fibre.stack.get();
  fibre.start.uc_stack.ss_size = kStackBytes;
  makecontext(&fibre.start, &Block::run_fibre, 0);
  return fibre;
}

// Returns whether cudaLaunchKernelEx accepts the launch. Source: CUDA C++ Programming Guide,
// compute capabilities.
bool fits_a_device(const Launch& how) {
  return how.threads >= 1 && how.threads <= 1024 && how.blocks.x >= 1 &&
         how.blocks.x <= 0x7fffffffU && how.blocks.y >= 1 && how.blocks.y <= 65535 &&
         how.blocks.z == 1;
}

}  // namespace

EmulatedOrderScope::EmulatedOrderScope(EmulatedOrder order) { current_order = order; }
EmulatedOrderScope::~EmulatedOrderScope() { current_order = EmulatedOrder::kForward; }

void throw_launch_error(const Launch& refused, cudaError_t code) {
  throw DeviceError(std::string("emulated grid: kernel ") + refused.kernel +
                    " was not started (code " + std::to_string(static_cast<int>(code)) + ")");
}

void run_emulated_grid(const Launch& how, const std::function<void()>& thread) {
  if (!fits_a_device(how)) throw_launch_error(how, cudaErrorInvalidConfiguration);
  static std::mutex one_grid_at_a_time;  // each replica starts grids in its own thread
  const std::lock_guard lock(one_grid_at_a_time);
  Block block(how, thread);
  current_block = &block;
  gridDim = how.blocks;
  const std::uint64_t blocks = static_cast<std::uint64_t>(how.blocks.x) * how.blocks.y;
  for (std::uint64_t i = 0; i < blocks; ++i) {
    const std::uint64_t index = current_order == EmulatedOrder::kForward ? i : blocks - 1 - i;
    blockIdx = {static_cast<unsigned>(index % how.blocks.x),
                static_cast<unsigned>(index / how.blocks.x), 0};
    block.run();
  }
  current_block = nullptr;
}

}  // namespace syncopate::cuda

void __syncthreads() { syncopate::cuda::current_block->wait_at_barrier(); }  // NOLINT
