// A pool of memory for the values in answers, used by RequestService.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "models/tensor/tensor.h"

namespace syncopate::ps {

// A pool of buffers. Buffers are reused because the first write to a new page costs more than
// copying the values. Thread-safe, since a thread of ZeroMQ gives buffers back.
class BufferPool {
 public:
  Tensor take(std::int64_t count, DType dtype);  // returns [count] elements with any content
  void give_back(Tensor buffer);

 private:
  std::mutex mutex_;
  // Unused buffers, by number of elements and type.
  std::map<std::pair<std::int64_t, DType>, std::vector<Tensor>> free_;
};

}  // namespace syncopate::ps
