// Shared memory as a Buffer, so that tensors look into it.
#pragma once

#include <cstddef>
#include <memory>

#include "models/base/shared_memory_file.h"
#include "models/tensor/buffer.h"

namespace syncopate {

// What lies behind the first `offset_bytes` of the mapping, which the buffer keeps.
std::shared_ptr<Buffer> make_mapped_buffer(SharedMapping mapping, std::size_t offset_bytes);

}  // namespace syncopate
