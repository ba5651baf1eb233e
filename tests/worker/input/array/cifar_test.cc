#include <gtest/gtest.h>

#include "models/base/errors.h"
#include "models/base/log.h"
#include "tests/support/contains.h"
#include "tests/support/thrown.h"
#include "tests/worker/input/packed_files.h"
#include "tests/worker/input/read_sample.h"
#include "worker/input/dataset.h"

namespace syncopate {
namespace {

constexpr std::size_t kRecord = 3073;

// Returns records of one label each: red is 1, 2, 3, ..., green 100 everywhere, blue the label.
Bytes records(const Bytes& labels) {
  Bytes bytes;
  for (const std::uint8_t label : labels) {
    bytes.push_back(label);
    for (int i = 1; i <= 1024; ++i) bytes.push_back(static_cast<std::uint8_t>(i));
    bytes.insert(bytes.end(), 1024, 100);
    bytes.insert(bytes.end(), 1024, label);
  }
  return bytes;
}

class Cifar10Folder : public testing::Test {
 protected:
  Cifar10Folder() {
    for (std::uint8_t i = 1; i <= 5; ++i) {
      put("data_batch_" + std::to_string(i) + ".bin", records({i, 0}));
    }
    put("test_batch.bin", records({9}));
  }

  void put(const std::string& name, const Bytes& bytes) {
    write_file(folder_.path() / name, bytes);
  }
  DataSplits open() const { return open_dataset("cifar10:" + folder_.path().string(), {}); }
  std::string load_error() const {
    return message_of<Error>([&] { open(); });
  }

  TemporaryFolder folder_;
};

TEST_F(Cifar10Folder, JoinsItsFilesAndInterleavesTheirPlanes) {
  const DataSplits splits = open();
  ASSERT_EQ(splits.train->size(), 10);
  EXPECT_EQ(splits.test->size(), 1);
  EXPECT_EQ(sample_shape(*splits.train), (Shape{32, 32, 3}));
  EXPECT_TRUE(splits.suits_crop_flip);
  Bytes pixels(3072);
  EXPECT_EQ(read_sample(*splits.train, 2, pixels), 2);
  EXPECT_EQ(Bytes(pixels.begin(), pixels.begin() + 6), (Bytes{1, 100, 2, 2, 100, 2}));
  EXPECT_EQ(Bytes(pixels.end() - 3, pixels.end()), (Bytes{0, 100, 2}));  // 1024 modulo 256
}

TEST_F(Cifar10Folder, IsReadPackedAndFromItsArchivesFolder) {
  const TemporaryFolder outer;
  const auto inner = outer.path() / "cifar-10-batches-bin";
  std::filesystem::create_directory(inner);
  for (int i = 1; i <= 5; ++i) {
    const std::string name = "data_batch_" + std::to_string(i) + ".bin";
    const Bytes plain = read_file(folder_.path() / name);
    write_file(inner / (name + (i % 2 == 0 ? ".gz" : ".zst")),
               i % 2 == 0 ? gzip(plain) : zstd(plain));
  }
  write_file(inner / "test_batch.bin", records({9}));
  const DataSplits splits = open_dataset("cifar10:" + outer.path().string(), {});
  Bytes pixels(3072);
  EXPECT_EQ(read_sample(*splits.train, 8, pixels), 5);
}

TEST_F(Cifar10Folder, NamesAMissingFile) {
  std::filesystem::remove(folder_.path() / "data_batch_3.bin");
  const std::string message = message_of<UsageError>([&] { open(); });
  EXPECT_TRUE(contains(message, "has no data_batch_3.bin"));
}

TEST_F(Cifar10Folder, NamesTheRecordWhoseLabelIsOutOfRange) {
  put("data_batch_2.bin", records({1, 10}));
  EXPECT_TRUE(contains(
      load_error(), "data_batch_2.bin: the label of record 1 (byte 3073) is 10; expected 0 to 9"));
}

TEST_F(Cifar10Folder, RefusesAFileCutInsideARecord) {
  const Bytes whole = records({1, 2});
  for (std::size_t size = 0; size < whole.size(); size += size % kRecord < 5 ? 1 : 307) {
    if (size == kRecord) continue;
    put("test_batch.bin", Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)));
    const std::string message = message_of<FileError>([&] { open(); });
    ASSERT_TRUE(contains(message, "test_batch.bin holds " + std::to_string(size) + " bytes"))
        << size << ": " << message;
  }
}

TEST_F(Cifar10Folder, WarnsWhenAFileIsCutBetweenRecords) {
  testing::internal::CaptureStderr();
  open();
  EXPECT_TRUE(contains(testing::internal::GetCapturedStderr(), "test_batch.bin holds 1 records"));
}

TEST_F(Cifar10Folder, RefusesBytesAfterTheLastRecord) {
  Bytes bytes = records({1});
  bytes.push_back(0);
  put("test_batch.bin", bytes);
  EXPECT_THROW(open(), FileError);
}

// Returns records of CIFAR-100 with these coarse and fine labels: green is 7, red and blue are 0.
Bytes records_of_two_labels(const std::vector<std::pair<int, int>>& labels) {
  Bytes bytes;
  for (const auto& [coarse, fine] : labels) {
    bytes.push_back(static_cast<std::uint8_t>(coarse));
    bytes.push_back(static_cast<std::uint8_t>(fine));
    bytes.insert(bytes.end(), 1024, 0);
    bytes.insert(bytes.end(), 1024, 7);
    bytes.insert(bytes.end(), 1024, 0);
  }
  return bytes;
}

class Cifar100Folder : public testing::Test {
 protected:
  Cifar100Folder() {
    put("train.bin", records_of_two_labels({{19, 99}, {0, 42}}));
    put("test.bin", records_of_two_labels({{3, 0}}));
  }
  void put(const std::string& name, const Bytes& bytes) {
    write_file(folder_.path() / name, bytes);
  }
  DataSplits open() const { return open_dataset("cifar100:" + folder_.path().string(), {}); }
  std::string load_error() const {
    return message_of<Error>([&] { open(); });
  }

  TemporaryFolder folder_;
};

TEST_F(Cifar100Folder, HasTheFineLabels) {
  const DataSplits splits = open();
  ASSERT_EQ(splits.train->size(), 2);
  EXPECT_EQ(splits.train->spec().num_classes, 100);
  Bytes pixels(3072);
  EXPECT_EQ(read_sample(*splits.train, 0, pixels), 99);
  EXPECT_EQ(read_sample(*splits.train, 1, pixels), 42);
  EXPECT_EQ(read_sample(*splits.test, 0, pixels), 0);
  EXPECT_EQ(Bytes(pixels.begin(), pixels.begin() + 4), (Bytes{0, 7, 0, 0}));
}

TEST_F(Cifar100Folder, IsReadFromItsArchivesFolder) {
  const TemporaryFolder outer;
  std::filesystem::rename(folder_.path(), outer.path() / "cifar-100-binary");
  EXPECT_EQ(open_dataset("cifar100:" + outer.path().string(), {}).train->size(), 2);
}

TEST_F(Cifar100Folder, NamesRecordAndByteOfALabelOutOfRange) {
  put("train.bin", records_of_two_labels({{0, 0}, {20, 1}}));
  EXPECT_TRUE(contains(
      load_error(), "train.bin: the coarse label of record 1 (byte 3074) is 20; expected 0 to 19"));
  put("train.bin", records_of_two_labels({{0, 100}}));
  EXPECT_TRUE(contains(load_error(), "the label of record 0 (byte 1) is 100; expected 0 to 99"));
}

TEST_F(Cifar100Folder, RefusesAFileCutInsideARecord) {
  Bytes bytes = records_of_two_labels({{1, 2}, {3, 4}});
  bytes.pop_back();
  put("test.bin", bytes);
  EXPECT_TRUE(contains(load_error(),
                       "test.bin holds 6147 bytes (unpacked); expected whole records of "
                       "3074 bytes, 30740000 in all"));
}

TEST_F(Cifar100Folder, RefusesTheFilesOfCifar10) {
  put("train.bin", records(Bytes(3074, 1)));  // whole records of both data sets
  EXPECT_TRUE(contains(load_error(), "is it the binary version of cifar100?"));
}

TEST_F(Cifar100Folder, NamesAMissingFile) {
  std::filesystem::remove(folder_.path() / "test.bin");
  const std::string message = message_of<UsageError>([&] { open(); });
  EXPECT_TRUE(
      contains(message, "has no test.bin (nor with .gz or .zst); expected train.bin and test.bin"));
}

}  // namespace
}  // namespace syncopate
