// Memory for the values of answers, used by RequestService.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "models/tensor/tensor.h"

namespace syncopate::ps {

// A pool of buffers: writing to new pages costs more than the copy of the values. Thread-safe,
// since ZeroMQ gives buffers back on a thread of its own.
class BufferPool {
 public:
  Tensor take(std::int64_t count, DType dtype);  // returns [count] of any content
  void give_back(Tensor buffer);

 private:
  std::mutex mutex_;
  // Unused buffers by number and type of their elements.
  std::map<std::pair<std::int64_t, DType>, std::vector<Tensor>> free_;
};

}  // namespace syncopate::ps
