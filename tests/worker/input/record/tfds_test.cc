// tfds:DIR as a data set.
#include <gtest/gtest.h>

#include <filesystem>

#include "models/base/errors.h"
#include "tests/support/contains.h"
#include "tests/support/thrown.h"
#include "tests/worker/input/read_sample.h"
#include "tests/worker/input/record/record_folders.h"

namespace syncopate {
namespace {

class TfdsFolders : public testing::Test {
 protected:
  static std::vector<TfdsSplitForm> three_splits() {
    return {{"train", {3, 0, 4}}, {"validation", {2}}, {"test", {1, 2}}};
  }
  DataSplits open(const std::filesystem::path& folder, RecordFields fields = {}) const {
    return open_dataset("tfds:" + folder.string(),
                        {.cache_dir = root_.path() / "cache",
                         .image = {.height = 8, .width = 8, .fields = std::move(fields)}});
  }
  DataSplits open() const { return open(folder()); }
  std::filesystem::path folder() const { return root_.path() / "tiny" / "1.0.0"; }
  std::string error() const {
    return message_if_thrown<Error>([&] { open(); });
  }

  void replace_in(const std::string& name, const std::string& from, const std::string& to) const {
    const Bytes bytes = read_file(folder() / name);
    std::string text(bytes.begin(), bytes.end());
    ASSERT_TRUE(contains(text, from));
    write_text(folder() / name, text.replace(text.find(from), from.size(), to));
  }

  TemporaryFolder root_;
};

TEST_F(TfdsFolders, HaveTheSplitsShardsAndClassesOfTheirFiles) {
  write_tfds(folder(), three_splits());
  const DataSplits data = open();
  EXPECT_EQ(data.name, "tfds");
  EXPECT_EQ(data.train->size(), 7);
  EXPECT_EQ(data.validation->size(), 2);
  EXPECT_EQ(data.test->size(), 3);
  EXPECT_EQ(data.class_names, (std::vector<std::string>{"ant", "bee", "cat"}));
  EXPECT_EQ(data.train->spec().num_classes, 3);
  EXPECT_TRUE(data.suits_crop_flip);
  Bytes pixels(8 * 8 * 3);
  for (int n = 0; n < 7; ++n) {
    EXPECT_EQ(read_sample(*data.train, n, pixels), n % 3);
    EXPECT_EQ(as_u8(data.train->stored_picture(n)->bytes), picture_of(n));
  }
}

TEST_F(TfdsFolders, AreFoundAboveTheirOnlyVersion) {
  write_tfds(folder(), three_splits());
  EXPECT_EQ(open(folder().parent_path()).train->size(), 7);
  write_tfds(folder().parent_path() / "2.0.0", three_splits());
  EXPECT_TRUE(contains(message_of<UsageError>([&] { open(folder().parent_path()); }),
                       "it has 2 versions, 1.0.0, 2.0.0; give the folder of one of them"));
}

TEST_F(TfdsFolders, TestOnTheValidationSplitIfTheyHaveNoOther) {
  write_tfds(folder(), {{"train", {5}}, {"validation", {2}}});
  const DataSplits data = open();
  EXPECT_EQ(data.validation, nullptr);
  EXPECT_EQ(data.test->size(), 2);
}

TEST_F(TfdsFolders, TestOnOneInTenIfTheyHaveOnlyTrainingSamples) {
  write_tfds(folder(), {{"train", {30, 30}}});
  const DataSplits data = open();
  EXPECT_EQ(data.train->size() + data.test->size(), 60);
  EXPECT_GT(data.test->size(), 0);
}

TEST_F(TfdsFolders, NameTheShardsThatAreMissing) {
  write_tfds(folder(), {{"train", {1, 1, 1, 1, 1, 1, 1, 1}}, {"test", {2}}});
  for (const char* const shard : {"1", "3", "4", "6", "7"}) {
    std::filesystem::remove(folder() /
                            ("tiny-train.tfrecord-0000" + std::string(shard) + "-of-00008"));
  }
  EXPECT_EQ(error(), "--data tfds: " + folder().string() +
                         ": 3 of 8 shards are there; the first that is missing is "
                         "tiny-train.tfrecord-00001-of-00008; fetch what is missing, or make the "
                         "data set again with tfds.load");
}

TEST_F(TfdsFolders, CompareTheNumberOfRecords) {
  write_tfds(folder(), three_splits());
  const std::filesystem::path shard = folder() / "tiny-test.tfrecord-00001-of-00002";
  write_file(shard, record_bytes({labelled_record(picture_of(1), 1)}));
  EXPECT_EQ(error(),
            shard.string() + ": 1 records; dataset_info.json says 2; fetch both files again");
}

TEST_F(TfdsFolders, AreRefusedInOneLine) {
  std::filesystem::create_directories(folder());
  EXPECT_TRUE(contains(error(), "neither the folder nor one in it has a dataset_info.json"));
  write_tfds(folder(), three_splits(), "array_record");
  EXPECT_TRUE(contains(error(), "its fileFormat is array_record; expected tfrecord"));
  write_tfds(folder(), {{"test", {2}}});
  EXPECT_TRUE(contains(error(), "it has no split train with records; its splits are test; fetch"));
  write_tfds(folder(), {});
  EXPECT_TRUE(
      contains(error(), "it has no split train with records; it has no splits at all; fetch"));
  write_tfds(folder(), three_splits());
  write_text(folder() / "label.labels.txt", "ant\nbee\n");
  EXPECT_TRUE(contains(error(),
                       "features.json has 3 classes, and label.labels.txt has 2 names; fetch both "
                       "again, or remove the file of names"));
  for (const char* const number : {"-4", "x", "1.5", "100001"}) {
    write_tfds(folder(), three_splits());
    replace_in("features.json", "\"3\"}}}", "\"" + std::string(number) + "\"}}}");
    EXPECT_EQ(error(), (folder() / "features.json").string() +
                           ": numClasses of feature label is \"" + number +
                           "\"; expected a whole number from 0 to 100000; fetch the file again");
  }
  write_tfds(folder(), three_splits());
  EXPECT_TRUE(contains(message_of<UsageError>([&] { open(folder(), {.image = "picture"}); }),
                       "--image-feature picture: there is no such feature"));
}

TEST_F(TfdsFolders, AreRefusedWhateverTheDamageOfTheirDescription) {
  for (const char* const name : {"dataset_info.json", "features.json"}) {
    write_tfds(folder(), {{"train", {2}}, {"test", {1}}});
    const Bytes whole = read_file(folder() / name);
    for (std::size_t size = 0; size < whole.size(); ++size) {
      write_file(folder() / name, std::span(whole).first(size));
      EXPECT_TRUE(contains(error(), folder().string())) << size;
      EXPECT_FALSE(contains(error(), "json.exception"));
    }
  }
}

// Each changed bit is found or leaves a data set; no error has a library's own words.
TEST_F(TfdsFolders, AreReadOrRefusedInOneLineWhateverBitOfTheirDescriptionChanged) {
  write_tfds(folder(), {{"train", {2}}, {"test", {1}}});
  int num_refused = 0;
  for (const char* const name : {"dataset_info.json", "features.json"}) {
    const Bytes whole = read_file(folder() / name);
    for (std::size_t at = 0; at < whole.size(); ++at) {
      Bytes damaged = whole;
      damaged[at] ^= static_cast<std::uint8_t>(1U << at % 8);
      write_file(folder() / name, damaged);
      const std::string found = error();
      if (found.empty()) continue;
      ++num_refused;
      EXPECT_TRUE(contains(found, folder().string()));
      EXPECT_FALSE(contains(found, "json.exception"));
    }
    write_file(folder() / name, whole);
  }
  EXPECT_GT(num_refused, 200);
}

// A link to itself cannot be read by any user; a folder without permission can be by root.
TEST_F(TfdsFolders, ThatCannotBeReadAreNoMissingFolders) {
  write_tfds(folder(), three_splits());
  const auto expect_unreadable = [&](const std::filesystem::path& data) {
    const std::string found = message_of<FileError>([&] { open(data); });
    EXPECT_TRUE(contains(found, "Too many levels of symbolic links; let this user read "));
    EXPECT_FALSE(contains(found, "filesystem error"));
  };
  std::filesystem::create_symlink("loop", root_.path() / "loop");
  expect_unreadable(root_.path() / "loop");
  expect_unreadable(root_.path() / "loop/tiny");
  for (const char* const name : {"label.labels.txt", "features.json", "dataset_info.json"}) {
    std::filesystem::remove(folder() / name);
    std::filesystem::create_symlink(name, folder() / name);
    expect_unreadable(folder());
  }
}

TEST_F(TfdsFolders, MayHaveFeaturesInTheFormOfEarlierVersions) {
  write_tfds(folder(), three_splits());
  write_text(folder() / "features.json", R"({"type": "a.FeaturesDict", "content": {
    "picture": {"type": "a.Image", "content": {"shape": [null, null, 3]}},
    "label": {"type": "a.ClassLabel", "content": {"num_classes": 3}}}})");
  EXPECT_TRUE(contains(error(), "--image-feature picture: there is no such feature"));
  EXPECT_EQ(open(folder(), {.image = "image"}).train->spec().num_classes, 3);
}

TEST_F(TfdsFolders, SayWhatTheirDescriptionLacks) {
  write_tfds(folder(), three_splits());
  const std::string info = (folder() / "dataset_info.json").string();
  write_text(info, "{}");
  EXPECT_EQ(error(), info +
                         ": not as TensorFlow Datasets writes it: it has no splits; fetch the "
                         "file again");
  write_text(info, R"({"name": "tiny", "splits": [{"name": 3}]})");
  EXPECT_EQ(error(), info +
                         ": not as TensorFlow Datasets writes it: a value is of another type "
                         "than expected; fetch the file again");
  write_text(info, "{\"name\": ");
  EXPECT_EQ(error(), info + ": no JSON, from byte 10 on; fetch the file again");
}

TEST_F(TfdsFolders, NoteWhichOfSeveralLabelsAndSplitsIsUsed) {
  const auto notes = [&](const RecordFields& fields) {
    testing::internal::CaptureStderr();
    open(folder(), fields);
    return testing::internal::GetCapturedStderr();
  };
  write_tfds(folder(), three_splits());
  EXPECT_EQ(notes({}), "");
  write_tfds(folder(), {{"train", {3}}, {"validation", {2}}, {"extra", {1}}});
  replace_in("features.json", "\"label\": {", R"("coarse": {"pythonClassName": "x.ClassLabel",
    "classLabel": {"numClasses": "2"}}, "label": {)");
  const std::string noted = notes({});
  EXPECT_TRUE(
      contains(noted, "--data tfds: --label-feature label is used; the data set also has coarse\n",
               "--data tfds: trained on split train, tested on validation; not used: extra, "
               "which --data 'tfrecord:" +
                   folder().string() + "/*-extra.*' reads\n"));
  EXPECT_FALSE(contains(notes({.label = "label"}), "--label-feature"));
}

TEST_F(TfdsFolders, UseTheFeaturesOfSupervisedKeys) {
  const auto used = [&](const std::string& keys) {
    write_tfds(folder(), three_splits());
    replace_in("features.json", "\"label\": {", R"("coarse": {"pythonClassName": "x.ClassLabel",
      "classLabel": {"numClasses": "2"}}, "label": {)");
    replace_in("dataset_info.json", "{", "{\"supervisedKeys\": " + keys + ",");
    try {
      open(folder());
      return std::string("label");
    } catch (const UsageError& error) {
      return std::string(error.what());
    }
  };
  EXPECT_EQ(used(R"({"input": "image", "output": "label"})"), "label");
  EXPECT_EQ(used("{}"), "label");
  // The records have no such feature, so the error names it.
  for (const char* keys : {R"({"input": "image", "output": "coarse"})",
                           R"({"tuple": {"items": [{"featureKey": "image"},
                                                   {"featureKey": "coarse"}]}})"}) {
    EXPECT_EQ(used(keys).find("--label-feature coarse: there is no such feature"), 0U)
        << used(keys);
  }
}

TEST_F(TfdsFolders, NoteThatSamplesAreTestedThatTheTrainingSplitHas) {
  write_tfds(folder(), {{"train", {30}}});
  testing::internal::CaptureStderr();
  open(folder());
  EXPECT_TRUE(contains(testing::internal::GetCapturedStderr(),
                       "trained on split train, tested on one in ten of it"));
}

TEST_F(TfdsFolders, OfRawPixelsNameTheFlagsThatReadThem) {
  write_tfds(folder(), {{"train", {2}}, {"test", {1}}});
  write_file(folder() / "tiny-train.tfrecord-00000-of-00001",
             record_bytes({labelled_record(Bytes(48, 1), 0), labelled_record(Bytes(48, 2), 1)}));
  EXPECT_TRUE(contains(error(),
                       "has 48 bytes that are no JPEG or PNG picture; for raw pixels give --data "
                       "'tfrecord:" +
                           folder().string() +
                           "/*-train.*' --raw-shape HxWxC:TYPE, such as 4x4x3:u8"));
}

}  // namespace
}  // namespace syncopate
