// Writes, packs and reads the files of tests of file formats.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "tests/worker/temporary_folder.h"

namespace syncopate {

using Bytes = std::vector<std::uint8_t>;

void write_file(const std::filesystem::path& path, std::span<const std::uint8_t> bytes);
Bytes read_file(const std::filesystem::path& path);
// Compress bytes; the result includes the checksum that the command-line tools write.
Bytes gzip(std::span<const std::uint8_t> bytes);
Bytes zstd(std::span<const std::uint8_t> bytes);

// Returns the message of the Error that `action` throws; "" when it throws none.
template <typename ErrorType, typename Action>
std::string message_of(const Action& action) {
  try {
    action();
  } catch (const ErrorType& error) {
    return error.what();
  }
  return "";
}

}  // namespace syncopate
