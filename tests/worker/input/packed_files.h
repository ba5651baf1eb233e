// Writes, packs and reads the files of tests of file formats.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

#include "tests/support/temporary_folder.h"
#include "tests/support/thrown.h"

namespace syncopate {

using Bytes = std::vector<std::uint8_t>;

Bytes text_bytes(std::string_view text);
void write_file(const std::filesystem::path& path, std::span<const std::uint8_t> bytes);
void write_file(const std::filesystem::path& path, std::string_view text);
Bytes read_file(const std::filesystem::path& path);
// Compress bytes; the result includes the checksum that the command-line tools write.
Bytes gzip(std::span<const std::uint8_t> bytes);
Bytes zstd(std::span<const std::uint8_t> bytes);

}  // namespace syncopate
