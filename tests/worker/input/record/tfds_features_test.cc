// The forms of features.json.
#include "worker/input/record/json_text.h"

#include <gtest/gtest.h>

#include "models/base/errors.h"
#include "tests/support/thrown.h"
#include "tests/worker/input/record/record_folders.h"

namespace syncopate {
namespace {

class FeaturesOfTfds : public testing::Test {
 protected:
  // Returns "name type classes, ...".
  std::string read(const std::string& text) const {
    write_text(path_, text);
    std::string listed;
    for (const TfdsFeature& feature : read_tfds_features(path_)) {
      listed += (listed.empty() ? "" : ", ") + feature.name + " " + feature.type + " " +
                std::to_string(feature.num_classes);
    }
    return listed;
  }
  std::string error(const std::string& text) const {
    return message_of<FileError>([&] { read(text); });
  }

  TemporaryFolder folder_;
  const std::filesystem::path path_ = folder_.path() / "features.json";
};

TEST_F(FeaturesOfTfds, AreReadFromMessages) {
  EXPECT_EQ(read(R"({"pythonClassName": "a.b.FeaturesDict", "featuresDict": {"features": {
      "image": {"pythonClassName": "a.b.Image", "image": {}},
      "pair": {"pythonClassName": "a.b.FeaturesDict", "featuresDict": {"features": {
        "label": {"pythonClassName": "a.b.ClassLabel", "classLabel": {"numClasses": "3"}}}}}}}})"),
            "image Image 0, pair/label ClassLabel 3");
}

// Source of the forms: feature.py of TensorFlow Datasets 4.9, FeatureConnector.from_json.
TEST_F(FeaturesOfTfds, AreReadFromTheFormsOfEarlierVersions) {
  EXPECT_EQ(read(R"({"type": "a.b.FeaturesDict", "content": {
      "features": {"type": "a.b.Image", "content": {"shape": [null, null, 3]}},
      "pair": {"type": "a.b.FeaturesDict", "content": {
        "label": {"type": "a.b.ClassLabel", "content": {"num_classes": 4}},
        "other": {"type": "a.b.ClassLabel", "content": {"num_classes": null}}}}}})"),
            "features Image 0, pair/label ClassLabel 4, pair/other ClassLabel 0");
  EXPECT_EQ(
      read(
          R"({"type": "a.b.FeaturesDict", "proto_cls": "c.FeaturesDict", "content": {"features": {
      "image": {"pythonClassName": "a.b.Image", "image": {}},
      "label": {"type": "a.b.ClassLabel", "proto_cls": "c.ClassLabel",
                "content": "{\"numClasses\": \"5\"}"}}}})"),
      "image Image 0, label ClassLabel 5");
  EXPECT_EQ(read(R"({"pythonClassName": "a.b.FeaturesDict", "featuresDict": {"features": {
      "label": {"pythonClassName": "a.b.ClassLabel",
                "jsonFeature": {"json": "{\"num_classes\": 6}"}}}}})"),
            "label ClassLabel 6");
}

TEST_F(FeaturesOfTfds, AreRefusedIfTheyAreNoDictionary) {
  const std::string file = path_.string();
  for (const char* const text : {"{}", R"({"type": "a.b.Image", "content": {}})"}) {
    EXPECT_EQ(error(text), file +
                               ": not as TensorFlow Datasets writes it: it is no dictionary of "
                               "features; fetch the file again");
  }
  EXPECT_EQ(
      error(R"({"type": "a.b.FeaturesDict"})"),
      file + ": not as TensorFlow Datasets writes it: it has no content; fetch the file again");
  EXPECT_EQ(
      error(R"({"type": "a.b.FeaturesDict", "content": {
      "label": {"type": "ClassLabel", "content": {"num_classes": -1}}}})"),
      file +
          ": num_classes of feature label is \"-1\"; expected a whole number from 0 to 100000; "
          "fetch the file again");
}

}  // namespace
}  // namespace syncopate
