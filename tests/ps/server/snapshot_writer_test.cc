#include "ps/server/snapshot_writer.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <optional>

#include "models/base/deadline.h"
#include "models/base/errors.h"
#include "tests/ps/server/served_job.h"
#include "tests/support/contains.h"
#include "tests/support/file_limit.h"

namespace syncopate::ps::testing {
namespace {

// A folder that is removed after the members of the test, which may still remove files in it.
class SnapshotFolderTest : public ::testing::Test {
 protected:
  SnapshotFolderTest() { std::filesystem::create_directories(dir_); }
  ~SnapshotFolderTest() override { std::filesystem::remove_all(dir_); }

  const std::filesystem::path dir_ =
      ::testing::TempDir() + "snapshot_writer_test." + std::to_string(getpid());
};

class SnapshotWriterTest : public SnapshotFolderTest {
 protected:
  void write(std::uint64_t number) {
    write_file(number);
    wait_until([&] { return writer_.take_written() == number; });
  }

  void write_file(std::uint64_t number) {
    auto copy = std::make_shared<ServedSnapshot>();
    copy->number = number;
    copy->state.values = make_host_tensor({1000}, DType::kF32);
    copy->state.values.f32()[999] = static_cast<float>(number);
    writer_.write({.snapshot = copy,
                   .declaration = declaration_of({}),
                   .coordinator = {static_cast<std::uint8_t>(number)}});
  }

  void wait_until(const std::function<bool()>& is_true) const {
    const Deadline deadline = Deadline::after(std::chrono::seconds(10));
    while (!is_true() && !deadline.passed()) {
      pollfd waiting{writer_.descriptor(), POLLIN, 0};
      poll(&waiting, 1, deadline.remaining_milliseconds());
    }
  }

  std::filesystem::path path_of(std::uint64_t number) const {
    return dir_ / ("shard-0-" + std::to_string(number) + ".snapshot");
  }

  // Damages the snapshot file: changes a byte of the values, or the byte at this offset of the
  // file.
  void damage(std::uint64_t number, std::optional<int> behind = std::nullopt) const {
    std::fstream file(path_of(number), std::ios::in | std::ios::out | std::ios::binary);
    const auto seek = [&] {
      file.seekg(behind.value_or(-100), behind ? std::ios::beg : std::ios::end);
    };
    seek();
    const int before = file.get();
    seek();
    file.put(static_cast<char>(before ^ 1));
  }

  SnapshotWriter writer_{dir_, 0, "nonce"};
};

using Snapshots = std::vector<std::uint64_t>;

TEST_F(SnapshotWriterTest, KeepsTheNewestThreeValidFiles) {
  for (std::uint64_t number = 1; number <= 4; ++number) write(number);
  EXPECT_EQ(writer_.existing(), (Snapshots{2, 3, 4}));
  for (std::uint64_t given_up = 5; given_up <= 8; ++given_up) {
    write(given_up);
    writer_.remove_from(given_up);
  }
  EXPECT_EQ(writer_.existing(), (Snapshots{3, 4}));
  write(9);
  EXPECT_EQ(writer_.existing(), (Snapshots{3, 4, 9}));
  EXPECT_EQ(writer_.read(4).state.values.f32()[999], 4.0F);
}

TEST_F(SnapshotWriterTest, KeepsItsFilesWhileNoDescriptorIsLeft) {
  if (kNeedsDescriptors != nullptr) GTEST_SKIP() << kNeedsDescriptors;
  write(1);
  std::optional<FileLimit> none(3);
  write_file(2);
  std::optional<SnapshotWriter::Unwritten> unwritten;
  wait_until([&] { return (unwritten = writer_.take_unwritten()).has_value(); });
  EXPECT_EQ(writer_.existing(), (Snapshots{1}));
  writer_.remove_from(2);
  none.reset();
  ASSERT_TRUE(unwritten);
  EXPECT_EQ(unwritten->snapshot, 2U);
  EXPECT_TRUE(contains(unwritten->reason, "ulimit -n"));
  write(3);
  EXPECT_EQ(writer_.existing(), (Snapshots{1, 3}));
}

TEST_F(SnapshotWriterTest, RemovesVoidFilesInTheBackground) {
  for (std::uint64_t number = 1; number <= 2; ++number) write(number);
  // While the thread in the background reads snapshot 3, it waits for the bytes of this pipe.
  ASSERT_EQ(mkfifo(path_of(3).c_str(), 0600), 0);
  const int pipe = open(path_of(3).c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_GE(pipe, 0);
  writer_.read_later(3);
  writer_.remove_all();
  EXPECT_TRUE(writer_.existing().empty());
  for (const std::uint64_t number : {1U, 2U}) {
    EXPECT_FALSE(std::filesystem::exists(path_of(number)));
    EXPECT_TRUE(std::filesystem::exists(path_of(number).string() + ".void")) << "not removed yet";
  }
  const std::vector<char> no_snapshot(100);
  EXPECT_EQ(::write(pipe, no_snapshot.data(), no_snapshot.size()), 100);
  wait_until([&] { return std::filesystem::is_empty(dir_); });
  EXPECT_TRUE(std::filesystem::is_empty(dir_));
  close(pipe);
}

TEST_F(SnapshotWriterTest, DetectsAChangedByte) {
  write(1);
  ASSERT_NO_THROW((void)writer_.read(1));
  damage(1);
  EXPECT_THROW((void)writer_.read(1), FileError);
}

TEST_F(SnapshotWriterTest, ReadsInTheBackground) {
  write(1);
  write(2);
  damage(2);
  std::optional<SnapshotFile> file;
  const auto is_read = [&] { return (file = writer_.take_read()).has_value(); };
  writer_.read_later(1);
  wait_until(is_read);
  ASSERT_TRUE(file);
  EXPECT_EQ(file->number, 1U);
  EXPECT_EQ(file->state.values.f32()[999], 1.0F);
  EXPECT_FALSE(writer_.failure());
  writer_.read_later(2);
  std::optional<std::uint64_t> unreadable;
  wait_until([&] { return (unreadable = writer_.take_unreadable()).has_value(); });
  EXPECT_EQ(unreadable, 2U);
  EXPECT_FALSE(writer_.failure()) << "there may be others";
  EXPECT_EQ(writer_.existing(), (Snapshots{1}));
}

TEST_F(SnapshotWriterTest, ReadsTheCoordinatorsPartDespiteDamagedValues) {
  write(1);
  damage(1);
  const SnapshotWriter again(dir_, 0, "nonce");
  EXPECT_EQ(again.existing(), (Snapshots{1}));
  EXPECT_EQ(again.read_coordinator(1), std::vector<std::uint8_t>{1});
}

TEST_F(SnapshotWriterTest, RemovesTruncatedFilesAndDamagedHeadersAtTheStart) {
  for (std::uint64_t number = 1; number <= 3; ++number) write(number);
  damage(1, 60);
  std::filesystem::resize_file(path_of(2), std::filesystem::file_size(path_of(2)) - 1);
  ::testing::internal::CaptureStderr();
  const SnapshotWriter again(dir_, 0, "nonce");
  const std::string lines = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(again.existing(), (Snapshots{3}));
  EXPECT_TRUE(contains(lines, "shard-0-1.snapshot is damaged; it is removed",
                       "shard-0-2.snapshot is cut short"));
}

TEST_F(SnapshotWriterTest, RemovesTemporaryFilesAndNoOtherFilesAtTheStart) {
  write(1);
  const std::vector<std::string> temporary = {"shard-0-2.snapshot.tmp4711",
                                              "shard-0-3.snapshot.void"};
  const std::vector<std::string> foreign = {
      "shard-0-of-4.safetensors", "shard-0-of-4.snapshot", "shard-0-2.snapshot.tmp",
      "shard-0-2.snapshot.gz",    "shard-0-x/y",           "shard-1-2.snapshot.void"};
  std::filesystem::create_directory(dir_ / "shard-0-x");
  for (const auto* names : {&temporary, &foreign}) {
    for (const std::string& name : *names) std::ofstream(dir_ / name) << "text";
  }
  const SnapshotWriter again(dir_, 0, "nonce");
  EXPECT_EQ(again.existing(), (Snapshots{1}));
  for (const std::string& name : temporary) EXPECT_FALSE(std::filesystem::exists(dir_ / name));
  for (const std::string& name : foreign) EXPECT_TRUE(std::filesystem::exists(dir_ / name)) << name;
}

TEST(ABlockChecksum, DependsOnEveryByteAndTheLength) {
  std::vector<std::byte> bytes(77);
  const std::uint64_t sum = block_checksum(5, bytes);
  EXPECT_NE(block_checksum(6, bytes), sum);
  EXPECT_NE(block_checksum(5, std::span(bytes).first(76)), sum);
  for (std::byte& byte : bytes) {
    byte = std::byte{0x80};
    EXPECT_NE(block_checksum(5, bytes), sum);
    byte = std::byte{0};
  }
}

}  // namespace
}  // namespace syncopate::ps::testing
