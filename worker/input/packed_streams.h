// What byte_stream.cc is made of: the file itself and the two unpackers. Nobody else includes this.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <span>
#include <string>

#include "worker/input/byte_stream.h"

namespace syncopate {

// The bytes of a file as they are. Errors name the file.
class FileSource {
 public:
  explicit FileSource(const std::filesystem::path& path);
  // Fewer bytes than asked for only at the end. Throws FileError.
  std::size_t read(std::span<std::uint8_t> target);
  const std::string& path() const noexcept { return path_; }

 private:
  std::string path_;
  std::ifstream file_;
};

std::unique_ptr<ByteStream> open_gzip_stream(const std::filesystem::path& path);
std::unique_ptr<ByteStream> open_zstd_stream(const std::filesystem::path& path);

}  // namespace syncopate
