// Tests of csv:FILE and csv:DIR.
#include <gtest/gtest.h>

#include <array>
#include <set>

#include "models/base/errors.h"
#include "tests/support/contains.h"
#include "tests/support/thrown.h"
#include "tests/worker/input/packed_files.h"
#include "worker/input/dataset.h"

namespace syncopate {
namespace {

class CsvFile : public testing::Test {
 protected:
  void put(const std::string& name, const std::string& text) {
    write_file(folder_.path() / name, text);
  }
  std::string flag(const std::string& name) const {
    return "csv:" + (folder_.path() / name).string();
  }
  DataSplits open(const std::string& name) const { return open_dataset(flag(name), {}); }
  std::string error(const std::string& name) const {
    return message_of<Error>([&] { open(name); });
  }
  // A file of samples whose feature is their number, in `classes` classes.
  void put_numbers(const std::string& name, int count, int classes) {
    std::string text;
    for (int i = 0; i < count; ++i) {
      text += std::to_string(i) + "," + std::to_string(i % classes) + "\n";
    }
    put(name, text);
  }

  TemporaryFolder folder_;
};

std::pair<float, std::int32_t> read(const Dataset& dataset, std::int64_t index) {
  float value = 0.0F;
  std::int32_t label = -1;
  const std::array inputs = {std::as_writable_bytes(std::span(&value, 1))};
  dataset.read(index, {}, {inputs, std::as_writable_bytes(std::span(&label, 1))});
  EXPECT_EQ(label, dataset.label(index));
  return {value, label};
}

std::vector<float> features_of(const Dataset& dataset) {
  std::vector<float> all;
  for (std::int64_t i = 0; i < dataset.size(); ++i) all.push_back(read(dataset, i).first);
  return all;
}

TEST_F(CsvFile, IsCutIntoTrainingAndTestSamplesOnce) {
  put_numbers("t.csv", 103, 3);
  const DataSplits data = open("t.csv");
  EXPECT_EQ(data.train->size(), 83);
  EXPECT_EQ(data.test->size(), 20);
  EXPECT_EQ(data.train->spec().num_classes, 3);
  EXPECT_EQ(data.train->spec().inputs[0].shape, (Shape{1}));
  EXPECT_EQ(data.train->spec().inputs[0].dtype, DType::kF32);
  const std::vector<float> train = features_of(*data.train);
  const std::vector<float> test = features_of(*data.test);
  std::set<float> all(train.begin(), train.end());
  all.insert(test.begin(), test.end());
  EXPECT_EQ(all.size(), 103U);
  // The parts are those of the file: no seed changes them.
  EXPECT_EQ(features_of(*open_dataset(flag("t.csv"), {.seed = 7}).test), test);
  for (std::int64_t i = 0; i < data.test->size(); ++i) {
    const auto [value, label] = read(*data.test, i);
    EXPECT_EQ(label, static_cast<int>(value) % 3);
  }
}

TEST_F(CsvFile, StandardisesEachColumnByTheTrainingSamples) {
  put("train.csv", "0,1000000,0\n2,1000004,1\n");
  put("test.csv", "9,9,0\n");
  const DataSplits data = open("");
  EXPECT_EQ(data.mean, (std::vector<float>{1, 1000002}));
  EXPECT_EQ(data.stddev, (std::vector<float>{1, 2}));
}

TEST_F(CsvFile, MayBeAFolderOfSplits) {
  put_numbers("train.csv", 10, 2);
  EXPECT_TRUE(contains(error(""), "has no test.csv"));
  put_numbers("test.csv", 4, 4);
  put_numbers("val.csv", 3, 2);
  const DataSplits data = open("");
  EXPECT_EQ(data.train->size(), 10);
  EXPECT_EQ(data.test->size(), 4);
  ASSERT_NE(data.validation, nullptr);
  EXPECT_EQ(data.validation->size(), 3);
  EXPECT_EQ(data.train->spec().num_classes, 4);
  put("test.csv", "1,2,0\n");
  EXPECT_TRUE(contains(error(""), "test.csv has 2 features, and "));
  put("train.csv", "a,b,y\n1,2,0\n1,2,1\n");
  const std::string train = (folder_.path() / "train.csv").string();
  const std::string test = (folder_.path() / "test.csv").string();
  EXPECT_EQ(error(""), train + " has a header, and " + test + " has none; give " + test +
                           " the same one: (sed -n 1p '" + train + "'; cat '" + test +
                           "') > NEW.csv");
  const std::string packed = "\na,b,y\n1,2,0\n1,2,1\n";
  write_file(train + ".gz", gzip(Bytes(packed.begin(), packed.end())));
  std::filesystem::remove(train);
  EXPECT_TRUE(
      contains(error(""), ": (zcat '" + train + ".gz' | sed -n 2p; cat '" + test + "') > NEW.csv"));
  std::filesystem::remove(train + ".gz");
  put("train.csv", "a,b,c,y\n1,2,3,0\n");
  put("test.csv", "a,c,b,y\n1,2,3,1\n");
  EXPECT_TRUE(contains(error(""), "test.csv: feature 2 is 'c', but 'b' in "));
}

TEST_F(CsvFile, FindsItsLabelColumnBehindAColon) {
  put("a:b.csv", "class,x\n1,5\n0,6\n");
  const DataSplits data = open("a:b.csv:class");
  EXPECT_EQ(data.train->spec().num_classes, 2);
  EXPECT_TRUE(contains(error("a:b.csv:none"), "has no label column 'none'"));
  EXPECT_EQ(open("a:b.csv:x").train->spec().num_classes, 7);
}

TEST_F(CsvFile, NamesTheColumnOfLabelsThatAreAllZero) {
  put("t.csv", "1,5,0\n0,6,0\n");
  const std::string path = (folder_.path() / "t.csv").string();
  EXPECT_EQ(error("t.csv"), "--data csv:" + path +
                                ": all labels are 0; expected at least two classes; the labels are "
                                "field 3, the last; another column is named by --data csv:" +
                                path + ":COLUMN, such as csv:" + path + ":1");
  EXPECT_EQ(open("t.csv:1").train->spec().num_classes, 2);
}

TEST_F(CsvFile, TellsWhichColumnHasTheLabelsAndWhichCountsTheRows) {
  const auto log_of = [&](const std::string& header, const std::string& name) {
    std::string text = header;
    for (int i = 0; i < 20; ++i) {
      text += std::to_string(1000 + i) + "," + std::to_string(i * i) + "," + std::to_string(i % 2) +
              "\n";
    }
    put("t.csv", text);
    testing::internal::CaptureStderr();
    open(name);
    return testing::internal::GetCapturedStderr();
  };
  const std::string counted = log_of("a,b,c\n", "t.csv");
  EXPECT_EQ(open("t.csv").target_place, "field 3 (c)");
  EXPECT_EQ(open("t.csv:targets=3,1").target_place, "field 3 (c), field 1 (a)");
  EXPECT_TRUE(contains(counted, "field 1 (a) counts the rows", "cut -d, -f1 --complement"));
  EXPECT_FALSE(contains(counted, "field 2"));
  const std::string named = log_of("a,Id,Label\n", "t.csv");
  EXPECT_TRUE(contains(named, "field 2 (Id) names the rows"));
  EXPECT_TRUE(contains(log_of(",b,label\n", "t.csv"), "field 1 () has no name and is left out"));
}

TEST_F(CsvFile, MayBePacked) {
  const std::string text = "1,0\n2,1\n3,0\n";
  write_file(folder_.path() / "t.csv.gz", gzip(text_bytes(text)));
  EXPECT_EQ(open("t.csv.gz").train->size(), 2);
}

TEST_F(CsvFile, NamesAMissingFileAndADamagedLine) {
  EXPECT_TRUE(
      contains(message_of<UsageError>([&] { open("none.csv"); }), "there is no file or folder"));
  put("t.csv", "1,0\nx,1\n");
  EXPECT_TRUE(contains(error("t.csv"), "t.csv, line 2: field 1 is 'x'"));
  put("t.csv", "1,0\n");
  EXPECT_TRUE(contains(error("t.csv"),
                       "expected 2 to 2^32 samples, because a fifth become test samples; found 1"));
}

}  // namespace
}  // namespace syncopate
