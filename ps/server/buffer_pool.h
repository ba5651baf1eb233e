// Memory for answers, used again and again: fresh pages cost more than the copy into them.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "models/tensor/tensor.h"

namespace syncopate::ps {

// Thread-safe: ZeroMQ gives buffers back on a thread of its own.
class BufferPool {
 public:
  // [count] f32 of any content.
  Tensor take(std::int64_t count) {
    {
      const std::lock_guard lock(mutex_);
      std::vector<Tensor>& free = free_[count];
      if (!free.empty()) {
        Tensor buffer = std::move(free.back());
        free.pop_back();
        return buffer;
      }
    }
    return make_host_tensor({count}, DType::kF32);
  }
  void give_back(Tensor buffer) {
    const std::lock_guard lock(mutex_);
    free_[buffer.num_elements()].push_back(std::move(buffer));
  }

 private:
  std::mutex mutex_;
  std::map<std::int64_t, std::vector<Tensor>> free_;  // by length
};

}  // namespace syncopate::ps
