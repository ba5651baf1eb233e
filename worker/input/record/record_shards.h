// Numbers the records of one split, which are in several TFRecord files, one file after another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "worker/input/record/record_file.h"
#include "worker/input/record/record_index.h"

namespace syncopate {

// Reads the records of one split by number. Thread-safe.
class RecordShards {
 public:
  // Opens the files and indexes them. Throws what RecordFile and index_records() throw.
  RecordShards(std::span<const std::filesystem::path> paths, IndexOptions& options,
               UnpackedBudget& budget);

  std::int64_t size() const noexcept { return starts_.back(); }
  std::size_t num_files() const noexcept { return files_.size(); }
  // size_of() returns the number of records in a file; file() returns the file.
  std::int64_t size_of(std::size_t file) const { return starts_[file + 1] - starts_[file]; }
  const RecordFile& file(std::size_t file) const { return *files_[file]; }

  // Returns the value that the index has for a record, see IndexedRecord::value.
  std::int64_t value(std::int64_t index) const { return at(index).indexed.value; }
  std::int64_t largest_value() const;  // -1 if all records are damaged or there are none
  // Returns the bytes of a record. Throws what RecordFile::read() throws.
  std::vector<std::byte> read(std::int64_t index) const;
  // Returns "PATH: record at byte N", for messages.
  std::string describe(std::int64_t index) const;
  // Returns a number that changes if the bytes of a record change. Does not read the record.
  std::uint64_t stamp(std::int64_t index) const;
  // Returns a number from 0 to `below` - 1, by a hash of the file's name and the record's number in
  // the file. The number does not depend on the folder of the file.
  std::uint32_t hashed(std::int64_t index, std::uint32_t below) const;

 private:
  struct Location {
    const RecordFile& file;
    const IndexedRecord& indexed;
    std::int64_t number;  // number of the record in its file
  };
  Location at(std::int64_t index) const;

  std::vector<std::unique_ptr<RecordFile>> files_;
  std::vector<RecordIndex> indexes_;
  // The number of the first record of each file. The last element, behind these numbers, is the
  // number of all records.
  std::vector<std::int64_t> starts_;
};

}  // namespace syncopate
