// Tests of targets that are numbers: float32 arrays of npy:DIR and columns of csv:FILE.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <vector>

#include "models/base/errors.h"
#include "tests/support/contains.h"
#include "tests/support/thrown.h"
#include "tests/worker/input/array/npy_bytes.h"
#include "tests/worker/input/packed_files.h"
#include "worker/input/dataset.h"

namespace syncopate {
namespace {

struct NumberSample {
  std::vector<float> features;
  std::vector<float> targets;
};

NumberSample read_numbers(const Dataset& dataset, std::int64_t index) {
  const SampleSpec& spec = dataset.spec();
  NumberSample sample;
  sample.features.resize(static_cast<std::size_t>(num_elements(spec.inputs[0].shape)));
  sample.targets.resize(static_cast<std::size_t>(num_elements(spec.target.shape)));
  const std::array inputs = {std::as_writable_bytes(std::span(sample.features))};
  dataset.read(index, {}, {inputs, std::as_writable_bytes(std::span(sample.targets))});
  return sample;
}

class NumbersOfArrays : public testing::Test {
 protected:
  // Two training samples and one test sample of one feature.
  NumbersOfArrays() {
    put("x_train", "(2, 1)", {1, 2});
    put("x_test", "(1, 1)", {3});
    put("y_train", "(2, 3)", {0.5, -1, 2, 4, 5, 6});
    put("y_test", "(1, 3)", {7, 8, 9});
  }
  void put(const std::string& name, std::string_view shape, const std::vector<float>& values) {
    write_file(folder_.path() / (name + ".npy"), npy_bytes("<f4", shape, bytes_of(values)));
  }
  DataSplits open() const { return open_dataset("npy:" + folder_.path().string(), {}); }
  std::string error() const {
    return message_of<Error>([&] { open(); });
  }

  TemporaryFolder folder_;
};

TEST_F(NumbersOfArrays, AreTheTargetsOfSamples) {
  const DataSplits data = open();
  const SampleSpec& spec = data.train->spec();
  EXPECT_EQ(spec.target.dtype, DType::kF32);
  EXPECT_EQ(spec.target.shape, Shape{3});
  EXPECT_EQ(spec.num_classes, 0);
  EXPECT_EQ(spec.least_target, -1.0F);
  EXPECT_EQ(spec.largest_target, 6.0F);
  EXPECT_EQ(data.test->spec().largest_target, 9.0F);
  EXPECT_EQ(read_numbers(*data.train, 1).targets, (std::vector<float>{4, 5, 6}));
  EXPECT_EQ(data.train->label(1), 0);
}

TEST_F(NumbersOfArrays, MayBeOnePerSample) {
  put("y_train", "(2,)", {1, 2});
  put("y_test", "(1,)", {3});
  EXPECT_EQ(open().train->spec().target.shape, Shape{1});
}

TEST_F(NumbersOfArrays, AreToldFromClassesThatWereSavedAsFloats) {
  EXPECT_EQ(open().classes_advice, "");
  put("y_train", "(2, 3)", {0, 1, 0, 1, 0, 0});
  EXPECT_TRUE(contains(open().classes_advice, "one-hot, save integers: for f in '",
                       "np.save(f, a.argmax(1))"));
  put("y_test", "(1,)", {3});
  put("y_train", "(2,)", {1, 2});
  EXPECT_TRUE(contains(open().classes_advice, "np.save(f, a.astype('int64'))"));
  for (const float other : {0.5F, -1.0F, 100000.0F}) {
    put("y_train", "(2,)", {1, other});
    EXPECT_EQ(open().classes_advice, "") << other;
  }
}

TEST_F(NumbersOfArrays, ArePartOfTheFingerprint) {
  const std::uint64_t before = open().train->fingerprint(0);
  put("y_train", "(2, 3)", {0.5, -1, 3, 4, 5, 6});
  EXPECT_NE(open().train->fingerprint(0), before);
}

TEST_F(NumbersOfArrays, MustBeFiniteAndOfOneKind) {
  put("y_train", "(2, 3)", {0, 1, 2, 3, std::nanf(""), 5});
  EXPECT_TRUE(
      contains(error(), "y_train.npy: target 1 of row 1, at byte 144, is nan; expected finite"));
  put("y_train", "(2, 3)", {0, 1, 2, 3, 4, 5});
  put("y_test", "(1, 2)", {1, 2});
  EXPECT_TRUE(contains(error(), "y_test.npy has 2 float32 per sample, and "));
  put("y_test", "(2, 3)", {0, 1, 2, 3, 4, 5});
  EXPECT_TRUE(contains(error(), "y_test.npy has 2 targets; expected as many"));
  put("y_train", "(2, 1, 3)", {0, 1, 2, 3, 4, 5});
  EXPECT_TRUE(contains(error(), "expected [N] or [N, K]"));
}

class NumbersOfATable : public testing::Test {
 protected:
  DataSplits open(const std::string& text, const std::string& columns) const {
    write_file(folder_.path() / "train.csv", text);
    write_file(folder_.path() / "test.csv", text);
    return open_dataset("csv:" + folder_.path().string() + ":targets=" + columns, {});
  }
  std::string error(const std::string& text, const std::string& columns) const {
    return message_of<Error>([&] { open(text, columns); });
  }

  TemporaryFolder folder_;
};

TEST_F(NumbersOfATable, AreColumnsByNameOrNumberInTheOrderGiven) {
  const std::string text = "price,rooms,area,age\n5.5,3,70,10\n6.5,4,80,20\n";
  const DataSplits data = open(text, "age,1");
  EXPECT_EQ(data.train->spec().target.shape, Shape{2});
  const NumberSample sample = read_numbers(*data.train, 1);
  EXPECT_EQ(sample.features, (std::vector<float>{4, 80}));
  EXPECT_EQ(sample.targets, (std::vector<float>{20, 6.5}));
  EXPECT_EQ(data.mean, (std::vector<float>{3.5, 75}));
}

TEST_F(NumbersOfATable, AreCutIntoTrainingAndTestSamples) {
  std::string text = "x,y\n";
  for (int i = 0; i < 10; ++i) text += std::to_string(i) + "," + std::to_string(2 * i) + "\n";
  write_file(folder_.path() / "t.csv", text);
  const DataSplits data =
      open_dataset("csv:" + (folder_.path() / "t.csv").string() + ":targets=y", {});
  ASSERT_EQ(data.test->size(), 2);
  const NumberSample sample = read_numbers(*data.test, 1);
  EXPECT_EQ(sample.targets[0], 2.0F * sample.features[0]);
}

TEST_F(NumbersOfATable, NameWhatIsWrong) {
  const std::string text = "x,y\n1,2\n3,4\n";
  EXPECT_TRUE(contains(error("x,y\n1,2\n3,high\n", "y"),
                       "line 3: field 2 (y) is 'high'; expected a finite"));
  EXPECT_TRUE(contains(error(text, "z"), "has no target column 'z'"));
  EXPECT_TRUE(contains(error(text, "y,2"), "field 2 (y) is twice among the targets"));
  EXPECT_TRUE(contains(error(text, "x,y"), "all 2 columns of"));
  EXPECT_TRUE(contains(error(text, ""), "expected the names or numbers of columns"));
}

}  // namespace
}  // namespace syncopate
