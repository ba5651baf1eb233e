// otbtf:DIR as a data set.
#include <gtest/gtest.h>

#include <array>
#include <filesystem>

#include "models/base/errors.h"
#include "tests/support/contains.h"
#include "tests/support/thrown.h"
#include "tests/worker/input/record/record_folders.h"
#include "worker/input/dataset.h"

namespace syncopate {
namespace {

class OtbtfFolders : public testing::Test {
 protected:
  DataSplits open(RecordFields fields = {}) const {
    return open_dataset("otbtf:" + folder_.path().string(),
                        {.image = {.fields = std::move(fields)}});
  }
  std::string error(const RecordFields& fields = {}) const {
    return message_if_thrown<Error>([&] { open(fields); });
  }
  std::string log_of_open() const {
    testing::internal::CaptureStderr();
    open();
    return testing::internal::GetCapturedStderr();
  }
  void write_both(const std::string& name, const std::string& text) const {
    for (const char* const split : {"train", "test"})
      write_text(folder_.path() / split / name, text);
  }

  TemporaryFolder folder_;
};

TEST_F(OtbtfFolders, HavePatchesAndLabelMaps) {
  write_otbtf(folder_.path(), {});
  const DataSplits data = open();
  EXPECT_EQ(data.name, "otbtf");
  EXPECT_EQ(data.train->size(), 9);
  EXPECT_EQ(data.validation->size(), 3);
  EXPECT_EQ(data.test->size(), 3);
  const SampleSpec& spec = data.train->spec();
  EXPECT_EQ(spec.inputs[0].dtype, DType::kU16);
  EXPECT_EQ(spec.inputs[0].shape, (Shape{16, 16, 2}));
  EXPECT_EQ(spec.target.shape, (Shape{16, 16}));
  EXPECT_EQ(spec.num_classes, 2);
  std::array<std::uint16_t, 512> patch{};
  std::array<std::int32_t, 256> map{};
  const std::array inputs = {std::span<std::byte>(std::as_writable_bytes(std::span(patch)))};
  data.train->read(1, {}, {inputs, std::as_writable_bytes(std::span(map))});
  EXPECT_EQ(patch[0], 3011);  // 3000 + 11 n
  EXPECT_EQ(patch[1], 3012);
  EXPECT_EQ(map[0], 1);
  EXPECT_EQ(map[255], 1);  // row 15 of sample 1 is inside
  EXPECT_EQ(map[7 * 16], 0);
  Draw mirrored{.kind = Augment::kCropFlip, .flip = true};
  data.train->read(1, mirrored, {inputs, std::as_writable_bytes(std::span(map))});
  EXPECT_EQ(patch[30], 3011) << "the first pixel is the last of its row";
}

TEST_F(OtbtfFolders, HaveFloatsAsTheyAre) {
  write_otbtf(folder_.path(), {.is_float = true});
  const DataSplits data = open();
  EXPECT_EQ(data.train->spec().inputs[0].dtype, DType::kF32);
  EXPECT_EQ(data.mean, (std::vector<float>{0, 0}));
}

TEST_F(OtbtfFolders, TestOnTheValidationSplitIfTheyHaveNoOther) {
  write_otbtf(folder_.path(), {.test = 0});
  EXPECT_EQ(open().validation, nullptr);
  EXPECT_EQ(open().test->size(), 3);
  EXPECT_TRUE(contains(log_of_open(), "/test has no records; tested on valid\n"));
  write_otbtf(folder_.path(), {});
  EXPECT_EQ(log_of_open(), "");
}

// A link to itself cannot be read by any user; a folder without permission can be by root.
TEST_F(OtbtfFolders, ThatCannotBeReadAreNoMissingFolders) {
  write_otbtf(folder_.path(), {.test = 0});
  std::filesystem::create_symlink("test", folder_.path() / "test");
  EXPECT_EQ(error().find("read " + (folder_.path() / "test").string() +
                         ": Too many levels of symbolic links; let this user read it"),
            0)
      << error();
}

TEST_F(OtbtfFolders, NameTheNumbersThatAreMissing) {
  write_otbtf(folder_.path(), {});
  EXPECT_EQ(log_of_open(), "");
  std::filesystem::copy(folder_.path() / "train/0.records", folder_.path() / "train/3.records");
  EXPECT_TRUE(contains(log_of_open(),
                       "/train has files up to 3.records, but not 1.records, 2.records; "
                       "fetch what is missing\n"));
  std::filesystem::rename(folder_.path() / "train/3.records", folder_.path() / "train/9.records");
  EXPECT_TRUE(contains(log_of_open(),
                       "up to 9.records, but not 1.records, 2.records, 3.records, 4.records, "
                       "5.records and 3 more; fetch"));
}

TEST_F(OtbtfFolders, SayHowManyPixelsDoNotCount) {
  write_otbtf(folder_.path(), {.test = 2, .num_uncounted = 7});
  EXPECT_TRUE(contains(log_of_open(), "98 pixels of labels have class 255 and do not count\n"))
      << "7 in each of 14 patches: " << log_of_open();
  EXPECT_EQ(open().train->spec().num_classes, 2);
}

TEST_F(OtbtfFolders, NameTheFileThatHasTheWrongShape) {
  write_otbtf(folder_.path(), {.label_side = 8});
  EXPECT_TRUE(contains(error(),
                       "feature labels is int32 [8, 8, 1]; expected integers [16, 16] or [16, 16, "
                       "1], the size that output_shape.json gives the input"));
  write_both("output_shape.json", R"({"xs": [null, null, null, 2], "labels": [null, null, 1]})");
  EXPECT_EQ(error(),
            "--image-feature xs: output_shape.json gives its shape as [null, null, 2]; all patches "
            "have one size: write it there in place of null");
}

// Each changed bit is found or leaves a data set; no error has a library's own words.
TEST_F(OtbtfFolders, AreReadOrRefusedInOneLineWhateverBitOfTheirDescriptionChanged) {
  write_otbtf(folder_.path(), {.train = 1, .valid = 0, .test = 1, .side = 4});
  int num_refused = 0;
  for (const char* const name : {"output_types.json", "output_shape.json"}) {
    const std::filesystem::path path = folder_.path() / "train" / name;
    const Bytes whole = read_file(path);
    for_each_damage(whole, [&](const Bytes& damaged) {
      write_file(path, damaged);
      const std::string found = error();
      num_refused += static_cast<int>(!found.empty());
      EXPECT_FALSE(contains(found, "json.exception"));
      EXPECT_EQ(found.find('\n'), std::string::npos) << found;
    });
    write_file(path, whole);
  }
  EXPECT_GT(num_refused, 500);
}

TEST_F(OtbtfFolders, KnowTheirTensorsByTypeAndShapeOrByFlags) {
  write_otbtf(folder_.path(), {});
  EXPECT_EQ(open({.image = "xs", .label = "labels"}).train->size(), 9);
  EXPECT_EQ(error({.image = "xs2"}),
            "--image-feature xs2: there is no such tensor; the patches have labels (int32 [16, 16, "
            "1]), xs (uint16 [16, 16, 2])");
  EXPECT_EQ(error({.label = "map"}),
            "--label-feature map: there is no such tensor; the patches have labels (int32 [16, 16, "
            "1]), xs (uint16 [16, 16, 2])");
  EXPECT_TRUE(contains(error({.label = "xs"}),
                       "--image-feature labels: int32 [16, 16, 1]; expected patches"));
  write_both("output_types.json", R"({"xs": "uint16", "labels": "int32", "more": "uint8"})");
  write_both("output_shape.json",
             R"({"xs": [16, 16, 2], "labels": [16, 16, 1], "more": [16, 16, 1]})");
  EXPECT_EQ(
      error().find("--data otbtf: give --label-feature NAME, the label map; the patches have"), 0);
  EXPECT_EQ(error({.label = "labels"}).find("--data otbtf: give --image-feature NAME, the input;"),
            0);
  EXPECT_EQ(open({.image = "xs", .label = "labels"}).train->size(), 9);
}

TEST_F(OtbtfFolders, NameTheShardsThatAreMissingAndFilesWithoutRecords) {
  write_otbtf(folder_.path(), {});
  write_text(folder_.path() / "train/1.records", "");
  testing::internal::CaptureStderr();
  EXPECT_EQ(open().train->size(), 9);
  const std::string warning = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(contains(warning, "1 of 2 files has no records, ", "train/1.records; fetch"));
  std::filesystem::rename(folder_.path() / "train/0.records",
                          folder_.path() / "train/p-00001-of-00004.records");
  EXPECT_TRUE(contains(error(),
                       "/train: 1 of 4 shards are there; the first that is missing is "
                       "p-00000-of-00004.records; fetch what is missing"));
}

TEST_F(OtbtfFolders, AreRefusedInOneLine) {
  EXPECT_TRUE(contains(error(), "has no output_types.json; expected a folder that OTBTF's"));
  write_otbtf(folder_.path(), {.valid = 0, .test = 0});
  EXPECT_TRUE(
      contains(error(), "has no records; expected *.records in train, and in valid or test"));
  write_otbtf(folder_.path(), {});
  write_both("output_types.json", R"({"xs": "float32", "labels": "int32"})");
  EXPECT_TRUE(contains(error(),
                       "feature xs is uint16 [16, 16, 2]; output_shape.json and output_types.json "
                       "say float32 [16, 16, 2]"));
  write_both("output_types.json", "{\"xs\": ");
  EXPECT_TRUE(
      contains(error(), "train/output_types.json: no JSON, from byte 8 on; fetch the file again"));
  write_both("output_types.json", "{\"xs\": 3}");
  EXPECT_TRUE(
      contains(error(), "output_types.json: not as OTBTF writes it: a value is of another type "));
}

}  // namespace
}  // namespace syncopate
