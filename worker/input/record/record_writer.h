// Writes a TFRecord file, which RecordFile and TensorFlow read.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <vector>

#include "models/base/replacing_file.h"

namespace syncopate {

// One thread only. The file appears under its name when all records are written: a reader never
// sees a part of it. Every function throws FileError.
class RecordWriter {
 public:
  explicit RecordWriter(std::filesystem::path path) : file_(std::move(path)) {}

  void write(std::span<const std::byte> record);
  // Syncs the file and gives it its name. Without it the file is removed.
  void commit();

 private:
  void flush();

  ReplacingFile file_;
  std::vector<std::byte> buffer_;
};

// Appends a record with its length and checksums, in the form of the file.
void append_record(std::span<const std::byte> record, std::vector<std::byte>& target);

}  // namespace syncopate
