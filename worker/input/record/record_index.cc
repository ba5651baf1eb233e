#include "worker/input/record/record_index.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <thread>
#include <utility>

#include "models/base/deadline.h"
#include "models/base/errors.h"
#include "models/base/file_lock.h"
#include "models/base/log.h"
#include "models/base/random.h"
#include "worker/input/pixel_cache.h"

namespace syncopate {
namespace {

constexpr std::uint32_t kIndexVersion = 1;

// The payload of a kept index: this, and then its records.
struct IndexStart {
  FileStamp stamp;
  std::uint64_t path_and_key = 0;  // a hash
};
static_assert(sizeof(IndexStart) % alignof(IndexedRecord) == 0);

std::uint64_t hash_of(const RecordFile& file, const IndexOptions& options) {
  std::error_code error;
  const std::filesystem::path path = std::filesystem::canonical(file.path(), error);
  return hash_name(fmt::format("{}\n{}", error ? file.path() : path.string(), options.value_key));
}

std::filesystem::path index_path(const RecordFile& file, const IndexOptions& options) {
  return options.cache_dir / fmt::format("records-{:016x}.index", hash_of(file, options));
}

// Returns the kept index of a file, if there is one of the file as it is now.
std::optional<RecordIndex> kept_index(const RecordFile& file, const IndexOptions& options) {
  if (options.cache_dir.empty()) return std::nullopt;
  const auto payload = map_pixel_cache_of_any_size(index_path(file, options), kIndexVersion);
  if (!payload || payload->bytes.size() < sizeof(IndexStart) ||
      (payload->bytes.size() - sizeof(IndexStart)) % sizeof(IndexedRecord) != 0) {
    return std::nullopt;
  }
  IndexStart start;
  std::memcpy(&start, payload->bytes.data(), sizeof start);
  if (start.stamp != file.stamp() || start.path_and_key != hash_of(file, options)) {
    return std::nullopt;
  }
  const auto bytes = payload->bytes.subspan(sizeof start);
  return RecordIndex{
      {reinterpret_cast<const IndexedRecord*>(bytes.data()), bytes.size() / sizeof(IndexedRecord)},
      payload->memory};
}

// Shows the progress over several files.
class IndexProgress {
 public:
  IndexProgress(const IndexOptions& options, std::int64_t total)
      : on_progress_(options.on_progress), total_(total) {}
  void add(std::int64_t bytes) {
    constexpr std::int64_t kTick = std::int64_t{16} << 20;
    done_ += bytes;
    if (!on_progress_ || (done_ < shown_ + kTick && done_ < total_)) return;
    on_progress_(std::min(done_, total_), total_);
    shown_ = done_;
  }

 private:
  const std::function<void(std::int64_t, std::int64_t)>& on_progress_;
  std::int64_t total_;
  std::int64_t done_ = 0;
  std::int64_t shown_ = 0;
};

std::vector<IndexedRecord> make_index(const RecordFile& file, const IndexOptions& options,
                                      IndexProgress& progress) {
  std::vector<IndexedRecord> records;
  file.scan([&](const RecordPlace& place, std::span<const std::byte> bytes, bool is_intact) {
    records.push_back({place, is_intact ? options.value(file, place, bytes) : kDamagedRecord});
    progress.add(static_cast<std::int64_t>(place.length + kRecordHeaderBytes + kRecordFooterBytes));
  });
  records.shrink_to_fit();
  return records;
}

// Keeps an index and returns it mapped; in memory if that fails.
RecordIndex keep_index(const RecordFile& file, std::vector<IndexedRecord> records,
                       IndexOptions& options) {
  if (!options.cache_dir.empty() && options.can_keep) {
    std::vector<std::uint8_t> payload(sizeof(IndexStart) + records.size() * sizeof(IndexedRecord));
    const IndexStart start{file.stamp(), hash_of(file, options)};
    std::memcpy(payload.data(), &start, sizeof start);
    if (!records.empty()) {
      std::memcpy(payload.data() + sizeof start, records.data(), payload.size() - sizeof start);
    }
    try {
      write_pixel_cache(index_path(file, options),
                        {.version = kIndexVersion, .payload_bytes = payload.size()}, payload);
      if (auto kept = kept_index(file, options)) return *std::move(kept);
    } catch (const FileError& error) {
      log(LogLevel::kWarning,
          fmt::format("nothing is kept for later epochs and runs: {}; give another --cache-dir",
                      error.what()));
      options.can_keep = false;
    }
  }
  auto owned = std::make_shared<const std::vector<IndexedRecord>>(std::move(records));
  return {*owned, owned};
}

// Waits for the lock of the cache folder. Returns an empty descriptor if the folder has no locks.
FileDescriptor lock_indexing(const IndexOptions& options) {
  const std::filesystem::path path = options.cache_dir / "records.lock";
  const Deadline deadline = Deadline::after(options.wait);
  for (bool is_first = true;; is_first = false) {
    try {
      FileLock lock = try_lock_file(path);
      if (lock.outcome != FileLock::Outcome::kTaken) return std::move(lock.file);
    } catch (const FileError&) {
      return {};  // writing the index reports a folder that cannot be used
    }
    if (is_first) {
      log(LogLevel::kInfo, fmt::format("waiting for another process that indexes records, for up "
                                       "to {}; it holds the lock of {}",
                                       in_seconds(options.wait), path.string()));
    }
    if (deadline.passed()) {
      throw FileError(fmt::format(
          "another process has indexed records for {} and holds the lock of {}; end it, or give "
          "another --cache-dir",
          in_seconds(options.wait), path.string()));
    }
    constexpr std::chrono::milliseconds kPoll(50);
    std::this_thread::sleep_for(kPoll);
  }
}

}  // namespace

std::vector<RecordIndex> index_records(std::span<const std::unique_ptr<RecordFile>> files,
                                       IndexOptions& options) {
  std::vector<RecordIndex> indexes(files.size());
  // Returns the places in `files` that have no kept index.
  const auto find_kept = [&](const std::vector<std::size_t>& places) {
    std::vector<std::size_t> missing;
    for (const std::size_t i : places) {
      if (auto kept = kept_index(*files[i], options)) {
        indexes[i] = *std::move(kept);
      } else {
        missing.push_back(i);
      }
    }
    return missing;
  };
  std::vector<std::size_t> missing(files.size());
  for (std::size_t i = 0; i < missing.size(); ++i) missing[i] = i;
  missing = find_kept(missing);
  if (missing.empty()) return indexes;

  FileDescriptor lock;
  if (!options.cache_dir.empty() && options.can_keep) {
    std::error_code ignored;
    std::filesystem::create_directories(options.cache_dir, ignored);
    lock = lock_indexing(options);
    missing = find_kept(missing);
  }
  std::int64_t total = 0;
  for (const std::size_t i : missing) total += static_cast<std::int64_t>(files[i]->size_bytes());
  IndexProgress progress(options, total);
  for (const std::size_t i : missing) {
    indexes[i] = keep_index(*files[i], make_index(*files[i], options, progress), options);
  }
  return indexes;
}

}  // namespace syncopate
