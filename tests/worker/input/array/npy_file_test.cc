#include "worker/input/array/npy_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <array>

#include "models/base/errors.h"
#include "tests/support/contains.h"
#include "tests/support/thrown.h"
#include "tests/worker/input/array/npy_bytes.h"
#include "tests/worker/input/packed_files.h"

namespace syncopate {
namespace {

class NpyFileOnDisk : public testing::Test {
 protected:
  NpyFileOnDisk() {
    write_file(path_, npy_bytes("<u2", "(3, 2)", bytes_of<std::uint16_t>({1, 2, 3, 4, 5, 600})));
  }

  TemporaryFolder folder_;
  std::filesystem::path path_ = folder_.path() / "x.npy";
};

TEST_F(NpyFileOnDisk, HasRowsByNumber) {
  const NpyFile file(path_);
  EXPECT_EQ(file.num_rows(), 3);
  EXPECT_EQ(file.row_bytes(), 4U);
  std::array<std::uint16_t, 2> row{};
  file.read(2, std::as_writable_bytes(std::span(row)));
  EXPECT_EQ(row, (std::array<std::uint16_t, 2>{5, 600}));
  std::array<std::uint16_t, 4> rows{};
  file.read(0, std::as_writable_bytes(std::span(rows)));
  EXPECT_EQ(rows, (std::array<std::uint16_t, 4>{1, 2, 3, 4}));
}

TEST_F(NpyFileOnDisk, ReportsThatItWasCutShortSinceItWasOpened) {
  const NpyFile file(path_);
  std::filesystem::resize_file(path_, 128 + 7);
  std::array<std::byte, 4> row{};
  EXPECT_NO_THROW(file.read(0, row));
  const std::string message = message_of<FileError>([&] { file.read(1, row); });
  EXPECT_TRUE(contains(message, "x.npy: ends at byte 135, inside row 1"));
}

TEST_F(NpyFileOnDisk, IsNotLoaded) {
  // A file of 1 TB, nearly all of it a hole.
  write_file(path_, npy_bytes("|u1", "(1048576, 1048576)", {}));
  std::filesystem::resize_file(path_, 128 + (std::uintmax_t{1} << 40));
  const NpyFile file(path_);
  std::array<std::byte, 1048576> row{};
  EXPECT_NO_THROW(file.read(1048575, row));
}

TEST_F(NpyFileOnDisk, IsRefusedWhenItIsNoRegularFileOrHoldsOneNumber) {
  EXPECT_TRUE(
      contains(message_of<FileError>([&] { NpyFile file(folder_.path()); }), "no regular file"));
  ASSERT_EQ(::mkfifo((folder_.path() / "pipe").c_str(), 0600), 0);
  EXPECT_THROW(NpyFile(folder_.path() / "pipe"), FileError);
  EXPECT_TRUE(contains(message_of<FileError>([&] { NpyFile file(folder_.path() / "none.npy"); }),
                       "No such file"));
  write_file(path_, npy_bytes("|u1", "()", {1}));
  EXPECT_TRUE(
      contains(message_of<FileError>([&] { NpyFile file(path_); }), "holds a single number"));
}

TEST_F(NpyFileOnDisk, MayHaveNoRows) {
  write_file(path_, npy_bytes("|u1", "(0, 28, 28)", {}));
  EXPECT_EQ(NpyFile(path_).num_rows(), 0);
}

}  // namespace
}  // namespace syncopate
