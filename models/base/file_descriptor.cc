#include "models/base/file_descriptor.h"

#include <cerrno>

namespace syncopate {

std::size_t write_all(const FileDescriptor& file, std::span<const std::byte> bytes) noexcept {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t count = ::write(file.get(), bytes.data() + done, bytes.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) break;
    done += static_cast<std::size_t>(count);
  }
  return done;
}

std::size_t read_all_at(const FileDescriptor& file, std::uint64_t offset,
                        std::span<std::byte> target) noexcept {
  std::size_t done = 0;
  while (done < target.size()) {
    errno = 0;  // of the end of the file
    const ssize_t count = ::pread(file.get(), target.data() + done, target.size() - done,
                                  static_cast<off_t>(offset + done));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    done += static_cast<std::size_t>(count);
  }
  return done;
}

}  // namespace syncopate
