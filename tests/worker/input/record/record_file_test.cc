// TFRecord files: checksums, golden bytes, damage, gzip, and files that change.
#include "worker/input/record/record_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <limits>

#include "models/base/errors.h"
#include "tests/support/contains.h"
#include "tests/support/thrown.h"
#include "tests/worker/input/record/record_bytes.h"

namespace syncopate {
namespace {

const Bytes kFoo = {'f', 'o', 'o'};
const Bytes kBar = {'b', 'a', 'r'};

std::uint32_t crc_of(const Bytes& bytes) { return crc32c(std::as_bytes(std::span(bytes))); }

// Source of the values: RFC 3720, appendix B.4.
TEST(Crc32c, HasThePublishedValues) {
  EXPECT_EQ(crc_of({'1', '2', '3', '4', '5', '6', '7', '8', '9'}), 0xE3069283);
  EXPECT_EQ(crc_of(Bytes(32, 0)), 0x8A9136AA);
  EXPECT_EQ(crc_of(Bytes(32, 0xFF)), 0x62A8AB43);
  Bytes rising(32);
  for (std::size_t i = 0; i < rising.size(); ++i) rising[i] = static_cast<std::uint8_t>(i);
  EXPECT_EQ(crc_of(rising), 0x46DD794E);
  EXPECT_EQ(crc_of({}), 0);
}

TEST(Crc32c, IsMaskedAsTensorFlowDoes) {
  EXPECT_EQ(masked_crc32c({}), 0xA282EAD8);
  EXPECT_EQ(masked_crc32c(std::as_bytes(std::span(kFoo))), 0xFEBE8A61);
}

class RecordFiles : public testing::Test {
 protected:
  // Source: the tests of Apache Beam, io/tfrecordio_test.py.
  static Bytes golden() {
    return from_hex(
        "0300000000000000 b099490e 666f6f 618abefe 0300000000000000 b099490e 626172 4600e5c8");
  }
  std::filesystem::path write(const Bytes& bytes) const {
    write_file(path_, bytes);
    return path_;
  }
  // Returns the records of a file; a damaged one is empty.
  std::vector<Bytes> records() const {
    UnpackedBudget budget{std::numeric_limits<std::int32_t>::max()};
    std::vector<Bytes> found;
    RecordFile(path_, budget)
        .scan([&](const RecordPlace&, std::span<const std::byte> bytes, bool is_intact) {
          found.push_back(is_intact ? as_u8(bytes) : Bytes());
        });
    return found;
  }
  RecordFile open() const {
    UnpackedBudget budget{1'000'000};
    return RecordFile(path_, budget);
  }

  TemporaryFolder folder_;
  std::filesystem::path path_ = folder_.path() / "a.tfrecord";
};

TEST_F(RecordFiles, AreWrittenAndReadAsTheGoldenBytes) {
  EXPECT_EQ(record_bytes({kFoo, kBar}), golden());
  RecordWriter writer(path_);
  writer.write(std::as_bytes(std::span(kFoo)));
  writer.write(std::as_bytes(std::span(kBar)));
  EXPECT_FALSE(std::filesystem::exists(path_)) << "before commit";
  writer.commit();
  EXPECT_EQ(read_file(path_), golden());
  EXPECT_EQ(records(), (std::vector<Bytes>{kFoo, kBar}));
  EXPECT_EQ(as_u8(open().read({19, 3})), kBar);
}

TEST_F(RecordFiles, HoldLargeAndEmptyRecords) {
  const std::vector<Bytes> written = {{}, Bytes(3'000'001, 7), {}, kFoo};
  RecordWriter writer(path_);
  for (const Bytes& record : written) writer.write(std::as_bytes(std::span(record)));
  writer.commit();
  EXPECT_EQ(records(), written);
  write({});
  EXPECT_TRUE(records().empty());
}

TEST_F(RecordFiles, AreUnpackedFromGzipWithinTheBudget) {
  write(gzip(golden()));
  EXPECT_EQ(records(), (std::vector<Bytes>{kFoo, kBar}));
  EXPECT_TRUE(open().is_unpacked());
  EXPECT_EQ(as_u8(open().read({19, 3})), kBar);
  UnpackedBudget enough{38};
  EXPECT_NO_THROW(RecordFile(path_, enough));
  EXPECT_EQ(enough.bytes_left, 0);
  UnpackedBudget small{37};
  const std::string error = message_of<FileError>([&] { RecordFile(path_, small); });
  EXPECT_TRUE(contains(error, path_.string() + ": gzip of ", " unpacks to more than 37 bytes; ",
                       "gzip --decompress --stdout " + path_.string() + " > NEW_FILE"));
}

TEST_F(RecordFiles, AreUnpackedIntoMemoryOfTheirSize) {
  if (SYNCOPATE_SANITIZED != 0) GTEST_SKIP() << "a sanitizer keeps memory of its own";
  constexpr std::size_t kSize = 50'000'000;
  write(gzip(Bytes(kSize, 0)));
  const auto peak_kb = [] {
    std::ifstream status("/proc/self/status");
    std::string word;
    while (status >> word && word != "VmHWM:") {
    }
    double kilobytes = 0.0;
    status >> kilobytes;
    return kilobytes;
  };
  // Sets the peak to what the process has now.
  if (!(std::ofstream("/proc/self/clear_refs") << 5 << std::flush)) {
    GTEST_SKIP() << "/proc/self/clear_refs cannot be written";
  }
  const double before = peak_kb();
  UnpackedBudget budget{kSize};
  const RecordFile file(path_, budget);
  // A tenth for the stream and the allocator; one block that grows takes half more at least.
  EXPECT_LT(peak_kb() - before, 1.1e-3 * kSize);
}

TEST_F(RecordFiles, OfManyBlocksAreReadAsTheyWerePacked) {
  std::vector<Bytes> written;
  for (int n = 0; n < 3; ++n) {
    written.emplace_back(4'000'000);
    for (std::size_t i = 0; i < written.back().size(); ++i) {
      written.back()[i] = static_cast<std::uint8_t>(i * (7 + static_cast<std::size_t>(n)) >> 3);
    }
  }
  const Bytes plain = record_bytes(written);
  write(gzip(plain));
  UnpackedBudget budget{static_cast<std::int64_t>(plain.size())};
  const RecordFile file(path_, budget);
  EXPECT_EQ(budget.bytes_left, 0);
  EXPECT_EQ(file.size_bytes(), plain.size());
  EXPECT_EQ(as_u8(file.read({4'000'016, 4'000'000})), written[1]);
  EXPECT_EQ(records(), written);
}

// A length whose first bytes are those of gzip: 0x8B1F bytes, and 8 in the third.
TEST_F(RecordFiles, ArePlainIfTheyOnlyBeginAsGzipDoes) {
  const std::vector<Bytes> written = {Bytes(0x088B1F, 1)};
  write(record_bytes(written));
  EXPECT_EQ(records(), written);
}

TEST_F(RecordFiles, AreRefusedIfTheyAreOthers) {
  write({'<', 'h', 't', 'm', 'l', '>', ' ', ' ', ' ', ' ', ' ', ' ', ' '});
  EXPECT_EQ(message_of<FileError>([&] { records(); }),
            path_.string() +
                ": no TFRecord file, plain or gzip: the checksum at byte 8 is not that "
                "of a length; expected a file of TensorFlow's TFRecordWriter");
  write({0x78, 0x9C, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  EXPECT_EQ(message_of<FileError>([&] { records(); }),
            path_.string() +
                ": no TFRecord file, plain or gzip: it begins as zlib does; write it "
                "again with options='GZIP' or without compression");
  std::filesystem::remove(path_);
  EXPECT_TRUE(contains(message_of<FileError>([&] { records(); }), "open " + path_.string()));
}

// Each cut and each changed bit is found: an error that names the file, or a record that is
// reported as damaged. Every other record is intact.
TEST_F(RecordFiles, ReportEveryDamage) {
  const auto is_boundary = [](std::size_t size) { return size == 0 || size == 19; };
  int num_silent = 0;
  for_each_damage(golden(), [&](const Bytes& damaged) {
    write(damaged);
    std::vector<Bytes> found;
    std::string error;
    try {
      found = records();
    } catch (const FileError& failure) {
      error = failure.what();
      EXPECT_TRUE(error.starts_with(path_.string() + ": ")) << error;
      EXPECT_TRUE(contains(error, "byte "));
      return;
    }
    if (damaged.size() < golden().size()) {
      EXPECT_TRUE(is_boundary(damaged.size())) << damaged.size();
      ++num_silent;
      return;
    }
    ASSERT_EQ(found.size(), 2);
    EXPECT_TRUE((found[0].empty() && found[1] == kBar) || (found[0] == kFoo && found[1].empty()));
  });
  EXPECT_EQ(num_silent, 2) << "cuts between two records";
}

TEST_F(RecordFiles, ReadNoDamagedRecord) {
  for_each_damage(golden(), [&](const Bytes& damaged) {
    write(damaged);
    for (const RecordPlace place : {RecordPlace{0, 3}, RecordPlace{19, 3}}) {
      try {
        EXPECT_EQ(as_u8(open().read(place)), place.offset == 0 ? kFoo : kBar);
      } catch (const FileError& error) {
        EXPECT_TRUE(std::string(error.what()).starts_with(path_.string())) << error.what();
      }
    }
  });
}

TEST_F(RecordFiles, NameTheRecordAndTheReason) {
  Bytes damaged = golden();
  damaged[19 + 12] ^= 1;
  write(damaged);
  EXPECT_EQ(message_of<FileError>([&] {
              open().read({19, 3});
            }),
            path_.string() +
                ": record at byte 19: the checksum of its bytes is wrong; fetch the "
                "file again");
  damaged[19] ^= 1;
  write(damaged);
  EXPECT_EQ(message_of<FileError>([&] {
              open().read({19, 3});
            }),
            path_.string() +
                ": record at byte 19: the checksum of its length is wrong, so that no "
                "record behind it can be found; fetch the file again");
}

TEST_F(RecordFiles, MustNotChangeWhileTheyAreRead) {
  write(golden());
  const RecordFile file = open();
  EXPECT_EQ(as_u8(file.read({0, 3})), kFoo);
  std::filesystem::resize_file(path_, 19);
  const std::string expected = path_.string() +
                               ": the file changed while it was in use; start again with files "
                               "that do not change";
  EXPECT_EQ(message_of<BadSampleError>([&] { file.read({0, 3}); }), expected);
}

}  // namespace
}  // namespace syncopate
