// A file descriptor with one owner, which closes the descriptor.
#pragma once

#include <unistd.h>

#include "models/base/unique_handle.h"

namespace syncopate {

struct FileDescriptorTraits {
  using Type = int;
  static Type none() noexcept { return -1; }
  static void close(Type descriptor) noexcept { ::close(descriptor); }
};
using FileDescriptor = UniqueHandle<FileDescriptorTraits>;

}  // namespace syncopate
