// What a worker's segment looks like inside: a header, then values, then gradients.
#pragma once

#include <cstdint>
#include <string>

#include "ps/net/segment.h"

namespace syncopate::ps {

// A file of this size, sealed. Throws OutOfMemoryError, FileError.
FileDescriptor make_segment_memory(std::int64_t elements);

// Maps and reserves it, and writes the header. Throws OutOfMemoryError, FileError.
MappedSegment map_own_segment(int memory, std::int64_t elements, const std::string& nonce);

// Maps what somebody else handed over, after a look at everything that could hurt. `owner`: for
// messages. Throws as map_segment() does.
MappedSegment map_foreign_segment(int memory, std::int64_t elements, const std::string& nonce,
                                  const std::string& owner);

}  // namespace syncopate::ps
