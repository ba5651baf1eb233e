#include "worker/input/array/npy_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "models/base/errors.h"
#include "worker/input/array/byte_stream.h"

namespace syncopate {

NpyFile::NpyFile(const std::filesystem::path& path)
    : path_(path.string()), file_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
  if (!file_) throw FileError(describe_errno("open", path_, errno));
  struct stat status {};
  if (::fstat(file_.get(), &status) != 0) throw FileError(describe_errno("read", path_, errno));
  if (!S_ISREG(status.st_mode)) throw FileError(path_ + ": no regular file; expected a .npy file");
  std::vector<std::uint8_t> start(kNpyStartBytes);
  start.resize(read_up_to_end(file_, path_, 0, std::as_writable_bytes(std::span(start))));
  header_ = parse_npy_header(start, path_);
  const std::uint64_t bytes =
      check_npy_size(header_, static_cast<std::uint64_t>(status.st_size), path_);
  if (header_.shape.empty()) {
    throw FileError(path_ + ": holds a single number; expected an array of samples");
  }
  const auto rows = static_cast<std::uint64_t>(std::max<std::int64_t>(1, header_.shape[0]));
  row_bytes_ = static_cast<std::size_t>(bytes / rows);
}

void NpyFile::read(std::int64_t row, std::span<std::byte> target) const {
  const std::uint64_t offset = offset_of(row);
  const std::size_t got = read_up_to_end(file_, path_, offset, target);
  if (got == target.size()) return;
  throw FileError(
      fmt::format("{}: ends at byte {}, inside row {}; it was cut short since it was opened; start "
                  "again with the whole file",
                  path_, offset + got, row));
}

}  // namespace syncopate
