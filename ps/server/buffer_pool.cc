#include "ps/server/buffer_pool.h"

namespace syncopate::ps {

Tensor BufferPool::take(std::int64_t count, DType dtype) {
  {
    const std::lock_guard lock(mutex_);
    std::vector<Tensor>& free = free_[{count, dtype}];
    if (!free.empty()) {
      Tensor buffer = std::move(free.back());
      free.pop_back();
      return buffer;
    }
  }
  return make_host_tensor({count}, dtype);
}

void BufferPool::give_back(Tensor buffer) {
  const std::lock_guard lock(mutex_);
  free_[{buffer.num_elements(), buffer.dtype()}].push_back(std::move(buffer));
}

}  // namespace syncopate::ps
