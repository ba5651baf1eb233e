// The index of TFRecord files: kept, shared, made again, and waited for.
#include "worker/input/record/record_index.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>

#include "models/base/errors.h"
#include "models/base/file_lock.h"
#include "tests/support/contains.h"
#include "tests/support/thrown.h"
#include "tests/worker/input/record/record_bytes.h"

namespace syncopate {
namespace {

using namespace std::chrono_literals;

class RecordIndexes : public testing::Test {
 protected:
  RecordIndexes() { write_file(path_, record_bytes({{5}, {6, 7}})); }

  IndexOptions options(const std::string& key = "key") {
    return {
        .cache_dir = cache(),
        .value_key = key,
        .value = [this](const RecordFile&, const RecordPlace&, std::span<const std::byte> bytes) {
          ++num_values_;
          return static_cast<std::int64_t>(bytes.front());
        }};
  }
  std::filesystem::path cache() const { return folder_.path() / "cache"; }
  std::vector<IndexedRecord> index(IndexOptions options) const {
    UnpackedBudget budget;
    std::vector<std::unique_ptr<RecordFile>> files;
    files.push_back(std::make_unique<RecordFile>(path_, budget));
    const std::vector<RecordIndex> indexes = index_records(files, options);
    return {indexes[0].records.begin(), indexes[0].records.end()};
  }
  std::filesystem::path kept_file() const {
    for (const auto& entry : std::filesystem::directory_iterator(cache())) {
      if (entry.path().extension() == ".index") return entry.path();
    }
    return {};
  }
  static std::vector<IndexedRecord> expected() { return {{{0, 1}, 5}, {{17, 2}, 6}}; }

  TemporaryFolder folder_;
  std::filesystem::path path_ = folder_.path() / "a.tfrecord";
  int num_values_ = 0;
};

TEST_F(RecordIndexes, AreMadeOnceAndKept) {
  EXPECT_EQ(index(options()), expected());
  EXPECT_EQ(num_values_, 2);
  EXPECT_EQ(index(options()), expected());
  EXPECT_EQ(num_values_, 2) << "the second time they are read from the cache folder";
  index(options("another key"));
  EXPECT_EQ(num_values_, 4);
}

TEST_F(RecordIndexes, AreMadeAgainForAFileThatChanged) {
  index(options());
  write_file(path_, record_bytes({{9}}));
  EXPECT_EQ(index(options()), (std::vector<IndexedRecord>{{{0, 1}, 9}}));
  // The same size, another time.
  write_file(path_, record_bytes({{8}}));
  std::filesystem::last_write_time(path_, std::filesystem::file_time_type::clock::now() + 5s);
  EXPECT_EQ(index(options()), (std::vector<IndexedRecord>{{{0, 1}, 8}}));
}

TEST_F(RecordIndexes, MarkDamagedRecords) {
  Bytes damaged = record_bytes({{5}, {6, 7}});
  damaged[12] ^= 1;
  write_file(path_, damaged);
  EXPECT_EQ(index(options())[0].value, kDamagedRecord);
  EXPECT_EQ(index(options())[1].value, 6);
}

TEST_F(RecordIndexes, AreMadeAgainAfterEveryDamageOfTheKeptFile) {
  index(options());
  const Bytes whole = read_file(kept_file());
  for_each_damage(whole, [&](const Bytes& damaged) {
    write_file(kept_file(), damaged);
    EXPECT_EQ(index(options()), expected());
  });
}

TEST_F(RecordIndexes, AreMadeInMemoryWithoutACacheFolder) {
  IndexOptions without = options();
  without.cache_dir.clear();
  EXPECT_EQ(index(without), expected());
  IndexOptions unusable = options();
  unusable.cache_dir = path_ / "below a file";
  EXPECT_EQ(index(unusable), expected());
  UnpackedBudget budget;
  std::vector<std::unique_ptr<RecordFile>> files;
  files.push_back(std::make_unique<RecordFile>(path_, budget));
  testing::internal::CaptureStderr();
  index_records(files, unusable);
  EXPECT_FALSE(unusable.can_keep);
  EXPECT_TRUE(contains(testing::internal::GetCapturedStderr(), "; give another --cache-dir"));
  testing::internal::CaptureStderr();
  index_records(files, unusable);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "") << "the warning comes once";
}

TEST_F(RecordIndexes, WaitForAnotherProcessAndThenGiveUp) {
  std::filesystem::create_directories(cache());
  FileLock lock = try_lock_file(cache() / "records.lock");
  ASSERT_EQ(lock.outcome, FileLock::Outcome::kHeld);
  IndexOptions short_wait = options();
  short_wait.wait = 60ms;
  const std::string error = message_of<FileError>([&] { index(short_wait); });
  EXPECT_TRUE(
      error.starts_with("another process has indexed records for 0.06 s and holds the lock"))
      << error;
  lock.file.reset();
  EXPECT_EQ(index(short_wait), expected());
}

TEST_F(RecordIndexes, LeaveNothingBehindWhenAValueIsRefused) {
  IndexOptions refusing = options();
  refusing.value = [](const RecordFile&, const RecordPlace&,
                      std::span<const std::byte>) -> std::int64_t {
    throw UsageError("no such feature");
  };
  EXPECT_THROW(index(refusing), UsageError);
  EXPECT_EQ(kept_file(), "");
  EXPECT_EQ(index(options()), expected()) << "the lock is free again";
}

}  // namespace
}  // namespace syncopate
