// The index of a TFRecord file has the place of each record and a number for each record, such as
// its class. Indexes are stored in the cache folder, one file per TFRecord file, and mapped, so
// that the processes of a machine share them. A file is indexed again if its size or time has
// changed.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "worker/input/record/record_file.h"

namespace syncopate {

struct IndexedRecord {
  RecordPlace place;
  std::int64_t value = 0;  // the result of RecordValue, or kDamagedRecord

  friend bool operator==(const IndexedRecord&, const IndexedRecord&) = default;
};

// IndexedRecord::value of a damaged record, which has a wrong checksum or cannot be parsed.
inline constexpr std::int64_t kDamagedRecord = -1;

struct RecordIndex {
  std::span<const IndexedRecord> records;
  std::shared_ptr<const void> memory;  // owns the records
};

// A function that returns the number which the index stores for a record, such as the class: a
// number of at least 0, or kDamagedRecord. An exception ends the indexing.
using RecordValue = std::function<std::int64_t(const RecordFile& file, const RecordPlace& place,
                                               std::span<const std::byte> bytes)>;

struct IndexOptions {
  std::filesystem::path cache_dir;  // empty: indexes are not stored
  bool can_keep = true;             // false: cache_dir cannot be written, and a warning was logged
  // A text that identifies the function `value`, such as the name of the feature that has the
  // class. A stored index with another key is not used.
  std::string value_key;
  RecordValue value;
  // Called from time to time during indexing; may be empty. done: the number of bytes indexed so
  // far. total: the number of all bytes.
  std::function<void(std::int64_t done, std::int64_t total)> on_progress{};
  // How long to wait for another process that writes indexes into this folder.
  std::chrono::milliseconds wait = std::chrono::minutes(30);
};

// Returns the index of each file. One process at a time makes indexes in a cache folder, under a
// file lock; other processes log that they wait, and then use these indexes. If the cache folder
// cannot be written, logs a warning, sets options.can_keep to false, and makes the indexes in
// memory. Throws what RecordFile::scan() throws, and FileError if another process takes longer than
// options.wait.
std::vector<RecordIndex> index_records(std::span<const std::unique_ptr<RecordFile>> files,
                                       IndexOptions& options);

}  // namespace syncopate
