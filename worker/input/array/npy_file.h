// Reads rows of a .npy file by number. The file is not loaded as a whole, so it may be larger than
// memory. Pages that were read stay in the page cache, which all processes of a machine share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "models/base/file_descriptor.h"
#include "worker/input/array/npy_header.h"

namespace syncopate {

// Reads rows of one .npy file. Row i of the array is the part with the first index i. Thread-safe.
class NpyFile {
 public:
  // Opens a file and checks its header and size. Throws FileError, also if the array is a single
  // number without dimensions.
  explicit NpyFile(const std::filesystem::path& path);

  const std::string& path() const noexcept { return path_; }
  const NpyHeader& header() const noexcept { return header_; }
  std::int64_t num_rows() const noexcept { return header_.shape[0]; }
  std::size_t row_bytes() const noexcept { return row_bytes_; }
  // Returns the offset in the file, in bytes, at which a row starts.
  std::uint64_t offset_of(std::int64_t row) const noexcept {
    return header_.data_offset + static_cast<std::uint64_t>(row) * row_bytes_;
  }
  // Reads bytes from the start of a row until `target` is full; `target` may have the size of
  // several rows. Throws FileError naming path and byte if the file cannot be read or was cut short
  // after it was opened.
  void read(std::int64_t row, std::span<std::byte> target) const;

 private:
  std::string path_;
  FileDescriptor file_;
  NpyHeader header_;
  std::size_t row_bytes_ = 0;
};

}  // namespace syncopate
