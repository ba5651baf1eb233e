// Tests that no damaged checkpoint file can crash the program, fill memory or leave a part of the
// values loaded.
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <set>

#include "models/base/random.h"
#include "tests/support/contains.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/thrown.h"
#include "tests/worker/checkpoint/checkpoint_case.h"
#include "worker/checkpoint/safetensors.h"

namespace syncopate {
namespace {

class DamagedCheckpoint : public testing::Test {
 protected:
  void SetUp() override {
    const Snapshot saved = counting_snapshot(graph_, adam_slots(), 1.0F);
    save_checkpoint(path_, graph_, saved, "adam", some_progress());
    good_ = read_file(path_);
    saved_values_ = tensor_values(graph_, saved);
    std::uint64_t length = 0;
    std::memcpy(&length, good_.data(), sizeof length);
    data_begin_ = sizeof length + length;
  }

  // Returns the error of loading a checkpoint with these bytes; "" when it loads.
  std::string error_of(const std::string& bytes) {
    write_file(path_, bytes);
    return load_error(path_, graph_, target_);
  }

  // Returns the bytes of a checkpoint with this header and `data` zero bytes.
  static std::string file_of(const std::string& header, std::size_t data) {
    const std::uint64_t length = header.size();
    std::string bytes(sizeof length, '\0');
    std::memcpy(bytes.data(), &length, sizeof length);
    return bytes + header + std::string(data, '\0');
  }

  std::string replaced(const std::string& what, const std::string& with) const {
    std::string bytes = good_;
    return bytes.replace(bytes.find(what), what.size(), with);
  }

  TemporaryFolder folder_;
  Graph graph_ = checkpoint_graph();
  Snapshot target_ = counting_snapshot(graph_, adam_slots(), -50'000.0F);
  std::vector<float> untouched_ = tensor_values(graph_, target_);
  std::filesystem::path path_ = checkpoint_path(folder_.path(), 1);
  std::string good_;
  std::vector<float> saved_values_;
  std::size_t data_begin_ = 0;
};

TEST_F(DamagedCheckpoint, IsReportedAsCutShortWhereverItEnds) {
  std::set<std::size_t> sizes = {0, 1, 7, 8, 9, data_begin_ - 1, data_begin_, data_begin_ + 1};
  for (std::size_t size = 0; size < good_.size(); size += 61) sizes.insert(size);
  // The file is also cut at the borders of the tensors, which follow each other without a gap.
  for (std::size_t elements : {54, 57, 60, 300, 305, 308, 311, 365}) {
    const std::size_t border = data_begin_ + elements * sizeof(float);
    sizes.insert({border - 1, border, border + 1});
  }
  sizes.insert(good_.size() - 1);
  for (const std::size_t size : sizes) {
    ASSERT_TRUE(contains(error_of(good_.substr(0, size)), "cut short"))
        << size << " of " << good_.size() << " bytes";
  }
  EXPECT_EQ(tensor_values(graph_, target_), untouched_);
}

TEST_F(DamagedCheckpoint, IsFoundByALossScaleOfZero) {
  Snapshot scaled = counting_snapshot(graph_, adam_slots(), 1.0F);
  for (const float scale : {0.0F, 0.5F, std::numeric_limits<float>::infinity()}) {
    scaled.loss_scale = LossScaleState{.scale = scale};
    save_checkpoint(path_, graph_, scaled, "adam", some_progress());
    EXPECT_TRUE(contains(load_error(path_, graph_, target_), "is damaged: its loss_scale is"));
  }
  EXPECT_EQ(tensor_values(graph_, target_), untouched_);
}

TEST_F(DamagedCheckpoint, IsFoundAfterAnyFlippedBit) {
  const RandomStream random(1, 0);
  for (std::uint64_t trial = 0; trial < 800; ++trial) {
    // Every second flipped bit is in the header, where the damage can be worst.
    const std::size_t end = trial % 2 == 0 ? data_begin_ : good_.size();
    const std::size_t at = random.below(2 * trial, static_cast<std::uint32_t>(end));
    std::string bytes = good_;
    bytes[at] = static_cast<char>(bytes[at] ^ (1 << random.below(2 * trial + 1, 8)));
    const std::string error = error_of(bytes);
    if (error.empty()) {
      // A flipped bit may go unnoticed only in the checksum's own hexadecimal digits, which have
      // two spellings.
      ASSERT_EQ(tensor_values(graph_, target_), saved_values_) << "byte " << at;
      ASSERT_LT(at, data_begin_);
    }
  }
}

TEST_F(DamagedCheckpoint, IsFoundAfterSwappedBytes) {
  std::string bytes = good_;
  std::swap(bytes[data_begin_ + 2], bytes[data_begin_ + 6]);
  ASSERT_NE(bytes, good_) << "swap two bytes that differ";
  EXPECT_TRUE(contains(error_of(bytes), "checksum"));
}

TEST_F(DamagedCheckpoint, IsFoundWhenBytesFollow) {
  EXPECT_TRUE(contains(error_of(good_ + "x"), "1 bytes follow"));
}

TEST_F(DamagedCheckpoint, OfAnotherFormatVersionNamesBoth) {
  const std::string error =
      error_of(replaced(R"("format_version":"1")", R"("format_version":"9")"));
  EXPECT_TRUE(contains(error, "format version 9", "reads version 1"));
}

TEST_F(DamagedCheckpoint, LacksAFieldThatEveryRunWrites) {
  FileMetadata whole = SafetensorsReader(path_).metadata();
  whole.erase("checksum");  // the writer adds that of the new file
  for (const char* key : {"model", "step", "data_flag", "data_samples", "samples_per_update",
                          "update_flags", "network", "network_hash"}) {
    FileMetadata metadata = whole;
    metadata.erase(key);
    SafetensorsWriter(path_, metadata, {}).commit();
    EXPECT_TRUE(contains(message_of<DamagedFileError>([&] { read_checkpoint_info(path_); }),
                         std::string("its metadata lack '") + key + "'"));
    write_file(path_, good_);
  }
}

TEST_F(DamagedCheckpoint, IsNotTheSameAsAFileOfAnotherProgram) {
  const std::string error = error_of(file_of("{}", 0));
  EXPECT_TRUE(contains(error, "has no format version: it was not written by this program"));
  EXPECT_FALSE(contains(error, "try an older one"));
  const std::string integers =
      error_of(file_of(R"({"w":{"dtype":"I64","shape":[2],"data_offsets":[0,16]}})", 16));
  EXPECT_TRUE(contains(integers, "tensor w has the type I64, expected F32"));
  EXPECT_FALSE(contains(integers, "damaged"));
}

TEST_F(DamagedCheckpoint, MayBeNoSafetensorsFileAtAll) {
  EXPECT_TRUE(
      contains(error_of("root:x:0:0:root:/root:/bin/bash\n"), "is damaged or no safetensors file"));
}

TEST_F(DamagedCheckpoint, IsFoundByFalseSizes) {
  const auto entry = [](const std::string& rest) {
    return file_of(R"({"w":{"dtype":"F32",)" + rest + "}}", 16);
  };
  const std::vector<std::string> broken = {
      std::string(8, '\xff') + "{}",                   // a header of 2^64 - 1 bytes
      file_of("[]", 0),                                // the header is no object
      file_of("{", 0),                                 // the header is no JSON
      file_of(std::string(1 << 20, '['), 0),           // too many levels
      file_of(R"({"w":4})", 0),                        // the entry is no object
      file_of(R"({"__metadata__":{"step":4}})", 0),    // the step is no string
      entry(R"("shape":[4])"),                         // offsets are missing
      entry(R"("shape":[4],"data_offsets":[0])"),      // one offset is missing
      entry(R"("shape":[4],"data_offsets":[16,0])"),   // the end precedes the begin
      entry(R"("shape":[4],"data_offsets":[-16,0])"),  // an offset is negative
      entry(R"("shape":[-4],"data_offsets":[0,16])"),  // the shape is negative
      entry(R"("shape":[3],"data_offsets":[0,16])"),   // shape and size differ
      // There is a gap between two tensors, in a file of the right length.
      file_of(R"({"w":{"dtype":"F32","shape":[4],"data_offsets":[4,20]}})", 20),
      entry(R"("shape":[8],"data_offsets":[0,32])"),                     // ends beyond the file
      entry(R"("shape":[4611686018427387905],"data_offsets":[0,4])"),    // the size overflows to 4
      entry(R"("shape":[4294967296,4294967296],"data_offsets":[0,0])"),  // the size overflows to 0
      entry(R"("shape":[18446744073709551615],"data_offsets":[0,16])"),  // beyond a signed number
      entry(R"("shape":[1e300],"data_offsets":[0,16])"),                 // the shape is no integer
      entry(R"("shape":"4","data_offsets":[0,16])"),                     // the shape is no list
      file_of(R"({"w":{"dtype":"F31","shape":[4],"data_offsets":[0,16]}})", 16),
  };
  for (const std::string& bytes : broken) {
    const std::string error = error_of(bytes);
    EXPECT_TRUE(error.find("damaged") != std::string::npos ||
                error.find("cut short") != std::string::npos)
        << bytes.substr(0, 80) << ": " << error;
  }
}

}  // namespace
}  // namespace syncopate
