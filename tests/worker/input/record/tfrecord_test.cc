// tfrecord:GLOB as a data set.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <set>
#include <thread>

#include "models/base/errors.h"
#include "tests/support/contains.h"
#include "tests/support/thrown.h"
#include "tests/worker/input/read_sample.h"
#include "tests/worker/input/record/record_folders.h"
#include "worker/input/image/image_decoder.h"
#include "worker/input/record/record_file.h"

namespace syncopate {
namespace {

class TfrecordFiles : public testing::Test {
 protected:
  // Raw values of two u8 each: sample n is n, 2 n with class n % 3.
  void write_values(const std::string& name, int begin, int end) const {
    std::vector<Bytes> records;
    for (int n = begin; n < end; ++n) {
      records.push_back(
          labelled_record({static_cast<std::uint8_t>(n), static_cast<std::uint8_t>(2 * n)}, n % 3));
    }
    write_file(path(name), record_bytes(records));
  }
  void write_pictures(const std::string& name, int count) const {
    std::vector<Bytes> records;
    for (int n = 0; n < count; ++n) records.push_back(labelled_record(picture_of(n), n % 3));
    write_file(path(name), record_bytes(records));
  }
  std::filesystem::path path(const std::string& name) const { return folder_.path() / name; }
  DataSplits open(const std::string& globs, ImageOptions image) const {
    std::string flag = "tfrecord:" + path("").string() + globs;
    const std::size_t colons = globs.find("::");
    if (colons != std::string::npos) {
      flag = "tfrecord:" + path(globs.substr(0, colons)).string() +
             "::" + path(globs.substr(colons + 2)).string();
    }
    return open_dataset(flag, {.cache_dir = folder_.path() / "cache", .image = std::move(image)});
  }
  static ImageOptions raw(const std::string& shape, const std::string& label = "") {
    return {.fields = {.label = label, .raw_shape = shape}};
  }
  std::string error(const std::string& globs, const ImageOptions& image) const {
    return message_of<Error>([&] { open(globs, image); });
  }
  // Returns the text without the path of the test's folder.
  std::string shortened(std::string text) const {
    const std::string folder = path("").string();
    for (std::size_t at = 0; (at = text.find(folder)) != std::string::npos;) {
      text.erase(at, folder.size());
    }
    return text;
  }

  TemporaryFolder folder_;
};

TEST_F(TfrecordFiles, HaveTheValuesOfTheirRecordsInTheOrderOfTheirNames) {
  write_values("b-1", 4, 7);
  write_values("b-0", 0, 4);
  write_values("t", 7, 9);
  const DataSplits data = open("b-*::t", raw("2:u8"));
  EXPECT_EQ(data.name, "tfrecord");
  ASSERT_EQ(data.train->size(), 7);
  ASSERT_EQ(data.test->size(), 2);
  EXPECT_EQ(data.train->spec().num_classes, 3);
  EXPECT_EQ(sample_shape(*data.train), (Shape{2}));
  Bytes values(2);
  for (int n = 0; n < 7; ++n) {
    EXPECT_EQ(read_sample(*data.train, n, values), n % 3);
    EXPECT_EQ(values, (Bytes{static_cast<std::uint8_t>(n), static_cast<std::uint8_t>(2 * n)}));
  }
  EXPECT_NE(data.train->fingerprint(0), data.train->fingerprint(1));
}

TEST_F(TfrecordFiles, AreReadAlikeWhenTheyArePacked) {
  write_values("a", 0, 9);
  write_values("t", 9, 11);
  write_file(path("p"), gzip(read_file(path("a"))));
  const DataSplits plain = open("a::t", raw("2:u8"));
  const DataSplits packed = open("p::t", raw("2:u8"));
  Bytes left(2);
  Bytes right(2);
  for (int n = 0; n < 9; ++n) {
    EXPECT_EQ(read_sample(*plain.train, n, left), read_sample(*packed.train, n, right));
    EXPECT_EQ(left, right);
    EXPECT_EQ(plain.train->fingerprint(n), packed.train->fingerprint(n));
  }
}

TEST_F(TfrecordFiles, OfOneGlobGiveOneInTenToTheTest) {
  write_values("a", 0, 100);
  write_values("b", 100, 120);
  const DataSplits data = open("[ab]", raw("2:u8"));
  EXPECT_EQ(data.train->size() + data.test->size(), 120);
  EXPECT_GT(data.test->size(), 3);
  EXPECT_LT(data.test->size(), 30);
  std::set<int> seen;
  Bytes values(2);
  for (const Dataset* split : {data.train.get(), data.test.get()}) {
    for (std::int64_t i = 0; i < split->size(); ++i) {
      read_sample(*split, i, values);
      seen.insert(values[0]);
    }
  }
  EXPECT_EQ(seen.size(), 120) << "every record is in one split";
  const DataSplits with_validation = open_dataset("tfrecord:" + path("[ab]").string(),
                                                  {.split = "val=0.25", .image = raw("2:u8")});
  EXPECT_EQ(with_validation.test->size(), data.test->size());
  EXPECT_EQ(with_validation.validation->size(), std::llround(0.25 * double(data.train->size())));
}

TEST_F(TfrecordFiles, HoldPicturesThatAreDecodedToOneSize) {
  write_pictures("a", 5);
  write_pictures("t", 2);
  constexpr std::int64_t kSize = 10;
  const ImageOptions image{.height = kSize, .width = kSize, .cache_dir = path("cache")};
  for (int round = 0; round < 2; ++round) {  // the second reads the cache
    const DataSplits data = open("a::t", image);
    EXPECT_EQ(sample_shape(*data.train), (Shape{kSize, kSize, 3}));
    Bytes found(kSize * kSize * 3);
    Bytes expected(found.size());
    for (int n = 0; n < 5; ++n) {
      EXPECT_EQ(read_sample(*data.train, n, found), n % 3);
      const Bytes file = picture_of(n);
      const auto bytes = std::as_bytes(std::span(file));
      decode_image(bytes, "x", read_image_header(bytes, "x"), {.width = kSize, .height = kSize},
                   expected);
      EXPECT_EQ(found, expected);
      EXPECT_EQ(as_u8(data.train->stored_picture(n)->bytes), file);
    }
  }
}

// ThreadSanitizer runs this test, too.
TEST_F(TfrecordFiles, AreReadByManyThreadsAsByOne) {
  constexpr int kSamples = 40;
  write_pictures("a", kSamples);
  write_file(path("p"), gzip(read_file(path("a"))));
  const auto pixels_of = [](const Dataset& data, std::int64_t index) {
    Bytes pixels(8 * 8 * 3);
    read_sample(data, index, pixels);
    return pixels;
  };
  const DataSplits alone = open("a::a", {.height = 8, .width = 8});
  for (const char* const globs : {"a::a", "p::a"}) {
    const DataSplits data =
        open(globs, {.height = 8, .width = 8, .skip_bad_records = 1, .cache_dir = path("kept")});
    std::atomic<int> num_equal = 0;
    {
      std::vector<std::jthread> readers;
      for (int first = 0; first < 4; ++first) {
        readers.emplace_back([&, first] {
          for (int n = 0; n < kSamples; ++n) {
            const int index = (n + 10 * first) % kSamples;
            num_equal += pixels_of(*data.train, index) == pixels_of(*alone.train, index);
          }
        });
      }
    }
    EXPECT_EQ(num_equal, 4 * kSamples) << globs;
  }
}

TEST_F(TfrecordFiles, WithDamagedPicturesAreRefusedOrSkipped) {
  write_pictures("a", 5);
  write_pictures("t", 2);
  Bytes bytes = read_file(path("a"));
  bytes[100] ^= 1;
  write_file(path("a"), bytes);
  EXPECT_EQ(shortened(error("a::t", {.height = 8, .width = 8})),
            "a: record at byte 0: the checksum of its bytes is wrong; fetch the file again");
  const DataSplits data = open("a::t", {.height = 8, .width = 8, .skip_bad_records = 1});
  Bytes pixels(8 * 8 * 3);
  EXPECT_THROW(read_sample(*data.train, 0, pixels), FileError);
  EXPECT_EQ(data.train->label(0), 0);
  EXPECT_EQ(data.train->fingerprint(0), 0);
  EXPECT_EQ(read_sample(*data.train, 1, pixels), 1);
  EXPECT_EQ(data.train->bad_samples()->limit(), 1);
}

TEST_F(TfrecordFiles, NameThePlaceOfAPictureThatIsNone) {
  write_file(path("a"), record_bytes({labelled_record(picture_of(1), 1),
                                      labelled_record({'<', 'h', 't', 'm', 'l', '>'}, 0)}));
  write_pictures("t", 2);
  const DataSplits data = open("a::t", {.height = 8, .width = 8});
  Bytes pixels(8 * 8 * 3);
  const std::string found =
      shortened(message_of<FileError>([&] { read_sample(*data.train, 1, pixels); }));
  EXPECT_TRUE(found.starts_with("a: record at byte ")) << found;
  EXPECT_TRUE(
      contains(found, ": expected a JPEG or PNG file, found HTML at byte 0; --skip-bad-records"));
}

TEST_F(TfrecordFiles, AreOfTheTypesThatRawShapeNames) {
  const std::vector<std::uint16_t> u16 = {1, 300, 7, 65535};
  Bytes bytes(8);
  std::memcpy(bytes.data(), u16.data(), 8);
  write_file(path("a"), record_bytes({labelled_record(bytes, 0), labelled_record(bytes, 1)}));
  const DataSplits data = open("a::a", raw("2x1x2:u16"));
  EXPECT_EQ(data.train->spec().inputs[0].dtype, DType::kU16);
  EXPECT_EQ(sample_shape(*data.train), (Shape{2, 1, 2}));
  Bytes found(8);
  EXPECT_EQ(read_sample(*data.train, 1, found), 1);
  EXPECT_EQ(found, bytes);
  EXPECT_EQ(data.mean.size(), 2);
}

TEST_F(TfrecordFiles, OfNumbersMustBeFinite) {
  const std::vector<float> f32 = {1.0F, std::nanf("")};
  Bytes bytes(8);
  std::memcpy(bytes.data(), f32.data(), 8);
  write_file(path("a"), record_bytes({labelled_record(bytes, 0)}));
  EXPECT_EQ(shortened(error("a::a", raw("2:f32"))),
            "a: record at byte 0: value 1 is nan; expected finite numbers");
}

TEST_F(TfrecordFiles, RefuseWhatDoesNotFitInOneLine) {
  write_values("a", 0, 12);
  write_values("t", 0, 2);
  EXPECT_EQ(shortened(error("none-*", raw("2:u8"))),
            "--data tfrecord: no file matches none-*; expected a pattern such as "
            "'data/train-*.tfrecord', in quotation marks");
  EXPECT_EQ(shortened(error("a::t", raw("3:u8"))),
            "--raw-shape: [3] u8 are 3 bytes; the feature image of a: record at byte 0 has 2 in 1 "
            "value; give 2:u8, if that is their shape");
  EXPECT_TRUE(contains(error("a::t", raw("1x1x1:u8")), "give 1x1x1:u16, if"));
  EXPECT_EQ(shortened(error("a::t", raw("2:u8", "class"))),
            "--label-feature class: there is no such feature in a: record at byte 0, which has "
            "image (bytes), label (int64)");
  EXPECT_EQ(shortened(error("a::t", raw("2:u8", "image"))),
            "--label-feature image: expected a feature of int64; a: record at byte 0 has image "
            "(bytes), label (int64)");
  EXPECT_EQ(error("t", raw("2:u8")).find("--data tfrecord: 2 records are too few"), 0);
  ImageOptions both = raw("2:u8");
  both.height = both.width = 8;
  EXPECT_EQ(
      error("a::t", both),
      "--image-size is for pictures, and --raw-shape says that the records have values; leave "
      "one of the two out");
  for (const char* const shape :
       {"", "2", "2:u9", "2x2:u8", "0:u8", "-1:u8", "2x:u8", "x2:u8", "2:u8x", "1x2x3x4:u8",
        "99999999999:f32", "70000x70000x70000:u8"}) {
    if (*shape == '\0') continue;
    EXPECT_EQ(error("a::t", raw(shape)).find(std::string("--raw-shape ") + shape + ": expected"), 0)
        << shape << ": " << error("a::t", raw(shape));
  }
}

TEST_F(TfrecordFiles, OfThreeGlobsHaveAValidationSplit) {
  write_values("a", 0, 9);
  write_values("v", 9, 12);
  write_values("t", 12, 14);
  const std::string folder = path("").string();
  const DataSplits data = open_dataset("tfrecord:" + folder + "a::" + folder + "v::" + folder + "t",
                                       {.image = raw("2:u8")});
  EXPECT_EQ(data.train->size(), 9);
  ASSERT_EQ(data.validation->size(), 3);
  EXPECT_EQ(data.test->size(), 2);
  Bytes values(2);
  read_sample(*data.validation, 0, values);
  EXPECT_EQ(values[0], 9);
  for (const char* const globs : {"x::", "::x", "x::::x", "::", "x::y::"}) {
    const std::string flag = std::string("tfrecord:") + globs;
    EXPECT_EQ(message_of<UsageError>([&] {
                open_dataset(flag, {});
              }).find("--data '" + flag + "': a pattern beside :: is empty; expected --data"),
              0)
        << globs;
  }
  EXPECT_TRUE(contains(message_of<UsageError>([] { open_dataset("tfrecord:a::b::c::d", {}); }),
                       ": more than three patterns; expected"));
}

TEST_F(TfrecordFiles, HaveTheClassNamesOfAFileBesideThem) {
  write_values("a", 0, 9);
  write_text(path("label.labels.txt"), "ant\nbee\ncat\ndog\n");
  const DataSplits data = open("a::a", raw("2:u8"));
  EXPECT_EQ(data.class_names, (std::vector<std::string>{"ant", "bee", "cat", "dog"}));
  EXPECT_EQ(data.train->spec().num_classes, 4) << "no record has class 3";
  write_text(path("label.labels.txt"), "ant\nbee\n");
  EXPECT_EQ(shortened(error("a::a", raw("2:u8"))),
            "label.labels.txt names 2 classes, and a record has class 2; correct or remove it");
}

TEST_F(TfrecordFiles, NameTheShardsThatAreMissing) {
  for (const int shard : {0, 2, 5}) {
    write_values("a-0000" + std::to_string(shard) + "-of-00008.tfrecord", 0, 9);
  }
  EXPECT_EQ(shortened(error("a-*::a-*", raw("2:u8")))
                .find("--data tfrecord: " + folder_.path().string() +
                      ": 3 of 8 shards are there; the first that is missing is "
                      "a-00001-of-00008.tfrecord; fetch what is missing, or give a pattern"),
            0)
      << error("a-*::a-*", raw("2:u8"));
  // A pattern that leaves shards out asks for no others.
  EXPECT_EQ(open("a-0000[025]-of-*::a-{00000,00005}-of-*", raw("2:u8")).test->size(), 18);
  EXPECT_TRUE(contains(error("a-0000[0-5]-of-*::a-*", raw("2:u8")), "3 of 8 shards"));
  EXPECT_TRUE(contains(error("a-{00000,00001}-of-*", raw("2:u8")),
                       "1 of 8 shards are there; the first "
                       "that is missing is a-00001-of-00008"));
}

TEST_F(TfrecordFiles, MayCountTheirShardsFromOne) {
  write_values("a-1-of-2", 0, 9);
  write_values("a-2-of-2", 9, 18);
  EXPECT_EQ(open("a-*::a-*", raw("2:u8")).train->size(), 18);
}

TEST_F(TfrecordFiles, WarnAboutFilesWithoutRecords) {
  write_values("a", 0, 9);
  write_file(path("b"), Bytes());
  testing::internal::CaptureStderr();
  EXPECT_EQ(open("[ab]::a", raw("2:u8")).train->size(), 9);
  const std::string warning = shortened(testing::internal::GetCapturedStderr());
  EXPECT_TRUE(contains(warning, "1 of 2 files has no records, b; fetch them again if they should"));
  EXPECT_TRUE(contains(error("b::a", raw("2:u8")), "hold no records; fetch them again, or give "));
}

TEST_F(TfrecordFiles, NameRawShapeAtTheStartIfTheyHoldNoPictures) {
  write_file(path("a"), record_bytes({labelled_record(Bytes(28 * 28, 7), 0),
                                      labelled_record(Bytes(28 * 28, 0), 1)}));
  EXPECT_EQ(shortened(error("a::a", {})),
            "--data tfrecord: the feature image of a: record at byte 0 has 784 bytes that are no "
            "JPEG or PNG picture; for raw pixels give --raw-shape HxWxC:TYPE, such as 28x28x1:u8");
  write_file(path("a"), record_bytes({labelled_record(Bytes(64 * 64 * 3, 7), 0)}));
  EXPECT_TRUE(contains(error("a::a", {.skip_bad_records = 1}), "such as 64x64x3:u8"));
  write_file(path("a"), record_bytes({labelled_record(Bytes(10, 7), 0)}));
  EXPECT_TRUE(contains(error("a::a", {}),
                       "has 10 bytes that are no JPEG or PNG picture; for raw pixels "
                       "give --raw-shape HxWxC:TYPE, with TYPE u8, u16 or f32"));
  // One record that is no picture is left to the decoder, which names it.
  write_file(path("a"),
             record_bytes({labelled_record(Bytes(784, 7), 0), labelled_record(picture_of(1), 1)}));
  EXPECT_EQ(open("a::a", {.height = 8, .width = 8}).train->size(), 2);
}

TEST_F(TfrecordFiles, SayThatAllRecordsAreDamaged) {
  write_pictures("a", 3);
  std::vector<RecordPlace> places;
  UnpackedBudget budget;
  RecordFile(path("a"), budget).scan([&](const RecordPlace& place, auto /*bytes*/, bool /*is*/) {
    places.push_back(place);
  });
  Bytes bytes = read_file(path("a"));
  for (const RecordPlace& place : places) bytes[place.offset + 50] ^= 1;
  write_file(path("a"), bytes);
  write_pictures("t", 2);
  EXPECT_EQ(shortened(error("a::t", {.height = 8, .width = 8, .skip_bad_records = 9})),
            "all 3 records are damaged; the first: a: record at byte 0: the checksum of its bytes "
            "is wrong; fetch the file again");
}

TEST_F(TfrecordFiles, NameTheFilesOfAFolderThatIsGivenAsAPattern) {
  std::filesystem::create_directories(path("sub"));
  for (const char* const name : {"sub", "sub/"}) {
    EXPECT_EQ(shortened(error(name, raw("2:u8"))),
              "--data tfrecord: sub is a folder; expected a pattern of its files, such as "
              "'sub/*.tfrecord', in quotation marks");
  }
}

TEST_F(TfrecordFiles, WarnOfARawShapeWithChannelsInFront) {
  write_file(path("a"),
             record_bytes({labelled_record(Bytes(50), 0), labelled_record(Bytes(50), 1)}));
  const auto warns = [&](const std::string& shape) {
    testing::internal::CaptureStderr();
    open("a::a", raw(shape));
    return testing::internal::GetCapturedStderr().find("read as HxWxC") != std::string::npos;
  };
  EXPECT_TRUE(warns("2x5x5:u8"));
  EXPECT_FALSE(warns("5x5x2:u8"));
}

TEST_F(TfrecordFiles, RefuseClassesThatAreNone) {
  write_file(path("a"), record_bytes({labelled_record({1, 2}, 0), labelled_record({1, 2}, -1)}));
  EXPECT_TRUE(contains(error("a::a", raw("2:u8")),
                       "its feature label is -1; expected one class from 0 to"));
  write_file(path("a"), record_bytes({labelled_record({1, 2}, 100000)}));
  EXPECT_TRUE(
      contains(error("a::a", raw("2:u8")), "its feature label is 100000; expected one class"));
}

TEST_F(TfrecordFiles, WarnWhenTrainingAndTestShareAFile) {
  write_values("a", 0, 5);
  write_values("b", 5, 9);
  testing::internal::CaptureStderr();
  open("[ab]::a", raw("2:u8"));
  const std::string warning = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(contains(warning, "training and test samples share 1 file"));
  testing::internal::CaptureStderr();
  open("a::b", raw("2:u8"));
  EXPECT_FALSE(contains(testing::internal::GetCapturedStderr(), "share"));
}

TEST_F(TfrecordFiles, MustNotChangeDuringTraining) {
  write_values("a", 0, 5);
  write_values("t", 5, 7);
  const DataSplits data = open("a::t", raw("2:u8"));
  Bytes values(2);
  read_sample(*data.train, 4, values);
  std::filesystem::resize_file(path("a"), 30);
  EXPECT_EQ(shortened(message_of<FileError>([&] { read_sample(*data.train, 4, values); })),
            "a: the file changed while it was in use; start again with files that do not change");
}

}  // namespace
}  // namespace syncopate
