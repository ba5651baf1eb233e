// What the data sets of TFRecord files share: memory, warnings, and a cache that cannot be written.
#include "worker/input/record/record_samples.h"

#include <gtest/gtest.h>

#include "models/base/errors.h"
#include "tests/support/contains.h"
#include "tests/support/thrown.h"
#include "tests/worker/input/read_sample.h"
#include "tests/worker/input/record/record_folders.h"
#include "worker/input/batches/batch_source.h"

namespace syncopate {
namespace {

class SamplesInRecords : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return (folder_.path() / name).string(); }
  // Returns what is logged when the data set is opened.
  std::string log_of(const std::string& data, const DataOptions& options = {}) const {
    testing::internal::CaptureStderr();
    open_dataset(data, options);
    return testing::internal::GetCapturedStderr();
  }
  static std::size_t count(const std::string& text, const std::string& part) {
    std::size_t number = 0;
    for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; ++at) ++number;
    return number;
  }

  TemporaryFolder folder_;
};

// A cgroup of the job, below which each step has one of its own without a limit.
TEST_F(SamplesInRecords, UnpackIntoATasksPartOfHalfOfTheMemoryThatTheJobHasLeft) {
  write_text(path("proc/meminfo"), "MemAvailable:   8000 kB\n");
  const auto budget = [&](int local_tasks) {
    return unpacked_budget({.local_tasks = local_tasks}, folder_.path()).bytes_left;
  };
  EXPECT_EQ(budget(1), 4096000);
  write_text(path("proc/self/cgroup"), "0::/job/step\n");
  write_text(path("sys/fs/cgroup/job/memory.max"), "5000000\n");
  write_text(path("sys/fs/cgroup/job/memory.current"), "2000000\n");
  write_text(path("sys/fs/cgroup/job/step/memory.max"), "max\n");
  EXPECT_EQ(budget(1), 1500000);
  EXPECT_EQ(budget(3), 500000);
}

// Returns a field of a protobuf message: its number and bytes, fewer than 128.
std::string field(char number, const std::string& bytes) {
  return std::string{static_cast<char>(number << 3 | 2), static_cast<char>(bytes.size())} + bytes;
}

// Returns a record with a feature of two values and a class.
Bytes record_of_two_values(const std::string& name) {
  const std::string two = field(1, field(1, "one") + field(1, "two"));
  const std::string label = field(3, field(1, std::string(1, '\0')));
  const auto entry = [](const std::string& key, const std::string& feature) {
    return field(1, field(1, key) + field(2, feature));
  };
  const std::string record = field(1, entry(name, two) + entry("label", label));
  return {record.begin(), record.end()};
}

TEST_F(SamplesInRecords, RefuseAFeatureOfSeveralPictures) {
  const Bytes one = labelled_record(picture_of(0), 0);
  const Bytes two = record_of_two_values("image");
  write_file(path("t"), record_bytes({one, one}));
  write_file(path("a"), record_bytes({two, one}));
  EXPECT_EQ(
      message_of<FileError>([&] { open_dataset("tfrecord:" + path("a") + "::" + path("t"), {}); }),
      path("a") +
          ": record at byte 0: its feature image has 2 values; expected one picture in a "
          "record; write a record for each, or name another feature by --image-feature");
  // Of a later record, when it is read.
  write_file(path("a"), record_bytes({one, two}));
  const DataSplits data = open_dataset("tfrecord:" + path("a") + "::" + path("t"), {});
  EXPECT_TRUE(
      contains(message_of<FileError>([&] { data.train->stored_picture(1); }), "has 2 values"));
  const auto example = Example::parse(std::as_bytes(std::span(two)));
  ASSERT_TRUE(example);
  EXPECT_EQ(message_of<FileError>([&] {
              require_one_value(*example, {"--label-feature", "image"}, FeatureKind::kBytes,
                                "tensor", "F");
            }),
            "F: its feature image has 2 values; expected one tensor in a record; write a record "
            "for each, or name another feature by --label-feature");
}

TEST_F(SamplesInRecords, WarnAboutAFileWithTwoNames) {
  write_file(path("a"), record_bytes({labelled_record({1}, 0), labelled_record({2}, 1)}));
  write_file(path("t"), read_file(path("a")));
  const DataOptions raw{.image = {.fields = {.raw_shape = "1:u8"}}};
  EXPECT_FALSE(
      contains(log_of("tfrecord:" + path("{a,?}") + "::" + path("t"), raw), "the same file"));
  std::filesystem::create_symlink("a", path("b"));
  EXPECT_TRUE(contains(
      log_of("tfrecord:" + path("[ab]") + "::" + path("t"), raw),
      path("a") + " and " + path("b") + " are the same file, and its samples count twice"));
}

TEST_F(SamplesInRecords, WarnOnceAboutACacheFolderThatCannotBeWritten) {
  write_tfds(path("tiny"), {{"train", {3}}, {"validation", {2}}, {"test", {2}}});
  write_text(path("file"), "");
  const std::filesystem::path cache = path("file/cache");
  const std::string log =
      log_of("tfds:" + path("tiny"), {.cache_dir = cache, .image = {.cache_dir = cache}});
  EXPECT_EQ(count(log, "nothing is kept for later epochs and runs: "), 1U) << log;
  EXPECT_EQ(count(log, "--cache-dir"), 1U) << log;
}

TEST_F(SamplesInRecords, AreNoBadSamplesIfTheirFileChanges) {
  std::vector<Bytes> records;
  for (int n = 0; n < 5; ++n) records.push_back(labelled_record(picture_of(n), n % 3));
  write_file(path("a"), record_bytes(records));
  write_file(path("t"), record_bytes(records));
  const DataSplits data =
      open_dataset("tfrecord:" + path("a") + "::" + path("t"),
                   {.image = {.height = 8, .width = 8, .skip_bad_records = 1000}});
  std::filesystem::resize_file(path("a"), 30);
  const std::string expected = path("a") +
                               ": the file changed while it was in use; start again with files "
                               "that do not change";
  testing::internal::CaptureStderr();
  const auto source = make_batch_source(*data.train, {.batch_size = 2});
  EXPECT_EQ(message_of<BadSampleError>([&] { source->next(); }), expected);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  const DataSplits strict = open_dataset("tfrecord:" + path("t") + "::" + path("t"),
                                         {.image = {.height = 8, .width = 8}});
  std::filesystem::resize_file(path("t"), 30);
  Bytes pixels(8 * 8 * 3);
  const std::string error = message_of<FileError>([&] { read_sample(*strict.train, 4, pixels); });
  EXPECT_TRUE(error.ends_with("that do not change")) << error << ": advice to skip pictures";
}

}  // namespace
}  // namespace syncopate
