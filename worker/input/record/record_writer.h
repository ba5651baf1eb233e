// Writes a TFRecord file, which RecordFile and TensorFlow read.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <vector>

#include "models/base/replacing_file.h"

namespace syncopate {

// Writes one TFRecord file. The file gets its name when all records are written, so that a reader
// never sees an incomplete file. Every function throws FileError. One thread only.
class RecordWriter {
 public:
  explicit RecordWriter(std::filesystem::path path) : file_(std::move(path)) {}

  void write(std::span<const std::byte> record);
  // Syncs the file and gives it its name. If commit() is not called, the destructor removes the
  // file.
  void commit();

 private:
  void flush();

  ReplacingFile file_;
  std::vector<std::byte> buffer_;
};

// Appends a record in the form of a TFRecord file, with its length and checksums, to `target`.
void append_record(std::span<const std::byte> record, std::vector<std::byte>& target);

}  // namespace syncopate
