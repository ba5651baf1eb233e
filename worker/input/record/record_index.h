// The index of a TFRecord file: where its records are, and a number of each, such as its class.
// Indexes are kept in the cache folder, one file per TFRecord file, and mapped: the processes of a
// machine share them. A file is indexed again if its size or time has changed since.
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
  std::int64_t value = 0;  // what RecordValue returned, or kDamagedRecord

  friend bool operator==(const IndexedRecord&, const IndexedRecord&) = default;
};

// The value of a damaged record: its checksum is wrong, or it cannot be parsed.
inline constexpr std::int64_t kDamagedRecord = -1;

struct RecordIndex {
  std::span<const IndexedRecord> records;
  std::shared_ptr<const void> memory;  // owns the records
};

// Returns the number of a record, at least 0, or kDamagedRecord. What it throws ends the indexing.
using RecordValue = std::function<std::int64_t(const RecordFile& file, const RecordPlace& place,
                                               std::span<const std::byte> bytes)>;

struct IndexOptions {
  std::filesystem::path cache_dir;  // empty: indexes are not kept
  bool can_keep = true;             // false: cache_dir cannot be written, which a warning has told
  // What `value` depends on, such as the name of the feature that has the class: an index with
  // another key is not used.
  std::string value_key;
  RecordValue value;
  // Called with the bytes that are indexed and all of them; may be empty.
  std::function<void(std::int64_t done, std::int64_t total)> on_progress{};
  // How long to wait for another process that indexes records into this folder.
  std::chrono::milliseconds wait = std::chrono::minutes(30);
};

// Returns the index of each file. One process at a time makes indexes in a cache folder, under a
// file lock; the others wait, log that they do, and use what it made. A cache folder that cannot be
// written costs a warning and clears options.can_keep, and the indexes are made in memory. Throws
// what RecordFile::scan() throws, and FileError when the wait is over.
std::vector<RecordIndex> index_records(std::span<const std::unique_ptr<RecordFile>> files,
                                       IndexOptions& options);

}  // namespace syncopate
