// Tests the file of --record, and record files that are truncated or damaged.
#include "ps/server/order_record.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "models/base/errors.h"
#include "ps/server/served_variables.h"
#include "tests/ps/server/served_job.h"
#include "tests/support/contains.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/thrown.h"

namespace syncopate::ps {
namespace {

using Kind = OrderEntry::Kind;

OrderHeader header() {
  return {.shard = 1,
          .servers = 3,
          .incarnation = 2,
          .fingerprint = 0x123456789abcdef0U,
          .buckets = {{1000, 1400}, {0, 600}},
          .declaration = std::string("a\0b", 3)};
}

OrderEntry written() { return {.kind = Kind::kWritten, .bucket = 1, .version_after = 1}; }

OrderEntry applied() {
  return {.kind = Kind::kApplied,
          .worker = 7,
          .incarnation = 2,
          .bucket = 1,
          .sequence = 5000000000,
          .version_read = 11,
          .version_after = 15,
          .staleness = 3,
          .learning_rate = 0.05F,
          .lanes = 4,
          .batch = {.epoch = 2, .begin = 320, .end = 352}};
}

OrderEntry answered() {
  return {
      .kind = Kind::kAnswered, .worker = 7, .incarnation = 2, .sequence = 8, .version_after = 9};
}

class OrderRecordTest : public ::testing::Test {
 protected:
  // The path contains the test's name, because tests run in parallel.
  OrderRecordTest()
      : path_(::testing::TempDir() + "order_record_" +
              ::testing::UnitTest::GetInstance()->current_test_info()->name()) {}
  ~OrderRecordTest() override { std::filesystem::remove(path_); }

  void write(int entries) const {
    OrderRecordWriter writer(path_, header());
    for (int i = 0; i < entries; ++i) {
      OrderEntry entry = applied();
      entry.sequence = static_cast<std::uint64_t>(i);
      writer.append(entry);
    }
  }
  std::uintmax_t size() const { return std::filesystem::file_size(path_); }
  // Returns the error message of reading the record file.
  std::string problem() const {
    return message_if_thrown<FileError>([&] { (void)read_order_record(path_); });
  }
  void flip(std::uintmax_t position) const {
    std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(static_cast<std::streamoff>(position));
    const int byte = file.get();
    file.seekp(static_cast<std::streamoff>(position));
    file.put(static_cast<char>(byte ^ 1));
  }

  const std::string path_;
};

TEST_F(OrderRecordTest, ReadsWhatWasWritten) {
  {
    OrderRecordWriter writer(path_, header());
    for (const OrderEntry& entry : {written(), applied(), answered()}) writer.append(entry);
  }
  const OrderRecord record = read_order_record(path_);
  EXPECT_EQ(record.header, header());
  EXPECT_EQ(record.entries, (std::vector<OrderEntry>{written(), applied(), answered()}));
}

TEST_F(OrderRecordTest, KeepsTheOrderOfMoreThanABufferHolds) {
  write(3000);
  const OrderRecord record = read_order_record(path_);
  ASSERT_EQ(record.entries.size(), 3000U);
  for (std::size_t i = 0; i < record.entries.size(); ++i) EXPECT_EQ(record.entries[i].sequence, i);
}

TEST_F(OrderRecordTest, IsOnDiskAfterAFlush) {
  OrderRecordWriter writer(path_, header());
  EXPECT_EQ(read_order_record(path_).header, header());
  writer.append(applied());
  writer.flush();
  EXPECT_EQ(read_order_record(path_).entries.size(), 1U);
}

TEST_F(OrderRecordTest, ReplacesAnOlderFile) {
  write(100);
  write(2);
  EXPECT_EQ(read_order_record(path_).entries.size(), 2U);
}

TEST_F(OrderRecordTest, LeavesOutAnIncompleteLastEntry) {
  write(3);
  for (const int missing : {1, 40, 79}) {
    write(3);
    std::filesystem::resize_file(path_, size() - static_cast<std::uintmax_t>(missing));
    EXPECT_EQ(read_order_record(path_).entries.size(), 2U) << missing;
  }
}

TEST_F(OrderRecordTest, NamesTheDamagedEntry) {
  write(3);
  const std::uintmax_t second = size() - 160;
  for (std::uintmax_t byte = 0; byte < 80; ++byte) {
    flip(second + byte);
    EXPECT_EQ(problem(), "order record " + path_ + ": entry 1 was changed") << byte;
    flip(second + byte);
  }
  EXPECT_EQ(problem(), "");
}

TEST_F(OrderRecordTest, DetectsEveryChangeOfItsHeader) {
  write(0);
  for (std::uintmax_t byte = 0; byte < size(); ++byte) {
    flip(byte);
    EXPECT_TRUE(contains(problem(), path_)) << byte;
    flip(byte);
  }
  EXPECT_EQ(problem(), "");
}

TEST_F(OrderRecordTest, DetectsATruncatedHeader) {
  write(0);
  while (size() > 0) {
    std::filesystem::resize_file(path_, size() - 1);
    EXPECT_TRUE(contains(problem(), "ends within its header")) << size();
  }
}

TEST_F(OrderRecordTest, RefusesAnEntryOfAnUnknownBucket) {
  {
    OrderRecordWriter writer(path_, header());
    writer.append({.bucket = 2});
  }
  EXPECT_TRUE(contains(problem(), "entry 0"));
}

TEST_F(OrderRecordTest, NamesAMissingFile) {
  EXPECT_TRUE(contains(problem(), path_ + ": No such file"));
  EXPECT_THROW(OrderRecordWriter(path_ + "/in/no/folder", header()), FileError);
}

// Limits the size of files that this process can write, during the object's lifetime.
class RoomOnDisk {
 public:
  explicit RoomOnDisk(rlim_t size_bytes) : ignored_(std::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &saved_);
    const rlimit limit{size_bytes, saved_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  RoomOnDisk(const RoomOnDisk&) = delete;
  RoomOnDisk& operator=(const RoomOnDisk&) = delete;
  ~RoomOnDisk() {
    setrlimit(RLIMIT_FSIZE, &saved_);
    std::signal(SIGXFSZ, ignored_);
  }

 private:
  void (*ignored_)(int);
  rlimit saved_{};
};

TEST_F(OrderRecordTest, ReportsAFullDiskOnce) {
  {
    const RoomOnDisk room(300);
    OrderRecordWriter writer(path_, header());
    for (int i = 0; i < 10; ++i) writer.append(applied());
    EXPECT_TRUE(
        contains(message_of<FileError>([&] { writer.flush(); }), path_ + ": File too large"));
    for (int i = 0; i < 10000; ++i) EXPECT_NO_THROW(writer.append(applied()));
    EXPECT_NO_THROW(writer.flush());
  }
  EXPECT_EQ(read_order_record(path_).entries.size(), 2U);
}

// A job whose records end earlier would otherwise seem to continue with those of the job before.
TEST(ServiceRecord, RemovesTheLaterRecordsOfAnEarlierJob) {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder / "order";
  const auto exists = [&](const char* name) { return std::filesystem::exists(folder / name); };
  for (const char* name : {"order.shard0.2", "order.shard0.65536", "order.shard1.2"}) {
    OrderRecordWriter((folder / name).string(), header());
  }
  for (const char* name : {"order.shard0.3", "order.shard0.2.bak"}) {
    std::ofstream(folder / name) << "not a record";
  }
  const auto served = make_served_variables(testing::declaration_of(testing::JobShape()), 0);
  ServiceRecord(file, 0, 2, 2, *served);
  EXPECT_TRUE(exists("order.shard0.65536")) << "a restarted server continues the record";
  ServiceRecord(file, 0, 2, 1, *served);
  EXPECT_TRUE(exists("order.shard0"));
  EXPECT_FALSE(exists("order.shard0.2"));
  EXPECT_FALSE(exists("order.shard0.65536"));
  EXPECT_TRUE(exists("order.shard1.2")) << "the record of another shard";
  EXPECT_TRUE(exists("order.shard0.3")) << "no record";
  EXPECT_TRUE(exists("order.shard0.2.bak")) << "no record";
}

TEST(OrderRecordPath, HasAFileForEachShardAndIncarnation) {
  EXPECT_EQ(order_record_path("run.order", 0, 1), "run.order.shard0");
  EXPECT_EQ(order_record_path("run.order", 2, 3), "run.order.shard2.3");
}

}  // namespace
}  // namespace syncopate::ps
