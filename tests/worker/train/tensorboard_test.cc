// Tests the event files of TensorBoard, read with the record reader and protobuf.
#include "worker/train/tensorboard.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "models/base/errors.h"
#include "tests/support/contains.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/thrown.h"
#include "worker/input/record/proto/event.pb.h"
#include "worker/input/record/record_file.h"

namespace syncopate {
namespace {

class TensorBoard : public testing::Test {
 protected:
  // Returns the event files of a folder in the order in which TensorBoard reads them, but for that
  // of leave_earlier_events().
  std::vector<std::filesystem::path> files_of(const std::string& split) const {
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path() / split)) {
      const std::string name = entry.path().filename().string();
      EXPECT_TRUE(contains(name, "tfevents"));
      if (name.find("earlier") == std::string::npos) files.push_back(entry.path());
    }
    std::ranges::sort(files);
    return files;
  }
  std::vector<proto::Event> events_of(const std::string& split) const {
    std::vector<proto::Event> events;
    for (const std::filesystem::path& file : files_of(split)) {
      UnpackedBudget budget;
      RecordFile(file, budget).scan([&](const RecordPlace& /*place*/, auto bytes, bool is_intact) {
        EXPECT_TRUE(is_intact);
        proto::Event& event = events.emplace_back();
        EXPECT_TRUE(event.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())));
      });
    }
    return events;
  }

  // Leaves files of an earlier run in train and test, which events_of() does not return.
  void leave_earlier_events() const {
    for (const char* const split : {"train", "test"}) {
      const std::filesystem::path path = folder_.path() / split;
      std::filesystem::remove_all(path);
      std::filesystem::create_directories(path);
      std::ofstream(path / "events.out.tfevents.1.earlier.v2") << "";
    }
  }

  TemporaryFolder folder_;
};

std::map<std::string, float> values_of(const proto::Event& event) {
  std::map<std::string, float> values;
  for (const auto& value : event.summary().value()) values[value.tag()] = value.simple_value();
  return values;
}

TEST_F(TensorBoard, HasACurveForEachNumberOfAStepAndOfAnEvaluation) {
  const auto writer = make_tensorboard_writer(folder_.path(), CurveWriter::kOnly);
  writer->write(BeginMetrics{});
  writer->write(StepMetrics{.step = 50,
                            .loss = 0.5,
                            .metric = {.value = 0.75},
                            .learning_rate = 0.125,
                            .samples_per_second = 1000.0});
  writer->write(StepMetrics{.step = 100, .loss = 0.25, .staleness_mean = 1.5, .staleness_max = 3});
  writer->write(EvalMetrics{.step = 100, .result = {.loss = 0.375, .metric = {.value = 0.5}}});
  writer->write(EvalMetrics{.step = 100,
                            .result = {.loss = 2.0, .metric = {.value = 0.25, .mean_iou = 0.125}},
                            .on_validation = true});
  writer->write(Summary{});

  const auto train = events_of("train");
  ASSERT_EQ(train.size(), 3U) << "the version and two steps";
  EXPECT_EQ(train[0].file_version(), "brain.Event:2");
  EXPECT_EQ(train[1].step(), 50);
  EXPECT_GT(train[1].wall_time(), 1.7e9);
  EXPECT_EQ(values_of(train[1]), (std::map<std::string, float>{{"loss", 0.5F},
                                                               {"accuracy", 0.75F},
                                                               {"learning_rate", 0.125F},
                                                               {"samples_per_second", 1000.0F},
                                                               {"input_wait_fraction", 0.0F}}));
  EXPECT_EQ(values_of(train[2]).at("staleness"), 1.5F);
  const auto test = events_of("test");
  ASSERT_EQ(test.size(), 2U);
  EXPECT_EQ(values_of(test[1]),
            (std::map<std::string, float>{{"loss", 0.375F}, {"accuracy", 0.5F}}));
  const auto validation = events_of("validation");
  ASSERT_EQ(validation.size(), 2U);
  EXPECT_EQ(values_of(validation[1]).at("mean_iou"), 0.125F);
}

TEST_F(TensorBoard, HasTheTestResultOfARunWithAValidationSplit) {
  const auto writer = make_tensorboard_writer(folder_.path(), CurveWriter::kFirstWorker);
  writer->write(Summary{.steps = 7,
                        .test = {.loss = 0.25, .metric = {.value = 0.5}},
                        .validation = Evaluation{.metric = {.value = 0.75}}});
  const auto test = events_of("test");
  ASSERT_EQ(test.size(), 2U);
  EXPECT_EQ(test[1].step(), 7);
  EXPECT_EQ(values_of(test[1]),
            (std::map<std::string, float>{{"loss", 0.25F}, {"accuracy", 0.5F}}));
}

// A run that was killed behind its last checkpoint repeats steps and evaluations, and one that was
// killed before its first checkpoint repeats them all.
TEST_F(TensorBoard, DropsTheStepsThatAnotherRunInTheFolderRepeats) {
  for (const std::int64_t step : {10, 0}) {
    leave_earlier_events();
    const auto writer = make_tensorboard_writer(folder_.path(), CurveWriter::kOnly);
    writer->write(BeginMetrics{.step = step});
    writer->write(StepMetrics{.step = step + 5});
    writer->write(EvalMetrics{.step = step + 5});
    for (const auto& events : {events_of("train"), events_of("test")}) {
      ASSERT_EQ(events.size(), 4U) << step;
      for (std::size_t i = 1; i < 3; ++i) {  // the first one of a folder drops nothing
        EXPECT_EQ(events[i].step(), step + 1);
        EXPECT_EQ(events[i].session_log().status(), proto::SessionLog::START);
      }
      EXPECT_EQ(events[3].step(), step + 5);
    }
    EXPECT_FALSE(std::filesystem::exists(folder_.path() / "validation"));
  }
}

TEST_F(TensorBoard, DropsTheEvaluationThatARunWithNothingLeftToTrainRepeats) {
  leave_earlier_events();
  const auto writer = make_tensorboard_writer(folder_.path(), CurveWriter::kOnly);
  writer->write(EvalMetrics{.step = 30});
  const auto test = events_of("test");
  ASSERT_EQ(test.size(), 4U);
  EXPECT_EQ(test[1].step(), 30);
  EXPECT_EQ(test[1].session_log().status(), proto::SessionLog::START);
}

// TensorBoard does not return to a file after it has read a newer one.
TEST_F(TensorBoard, HasTheEventsOfAsynchronousWorkersInTheirOrder) {
  leave_earlier_events();
  const auto first = make_tensorboard_writer(folder_.path(), CurveWriter::kFirstWorker);
  const auto second = make_tensorboard_writer(folder_.path(), CurveWriter::kOtherWorker);
  first->write(BeginMetrics{.step = 10});
  second->write(BeginMetrics{.step = 11});
  first->write(StepMetrics{.step = 20});
  first->write(StepMetrics{.step = 30});
  second->write(StepMetrics{.step = 40});  // reports from now on
  second->write(StepMetrics{.step = 50});
  first->write(StepMetrics{.step = 60});
  std::vector<std::int64_t> steps;
  int starts = 0;
  for (const proto::Event& event : events_of("train")) {
    if (event.has_summary()) steps.push_back(event.step());
    if (!event.has_session_log()) continue;
    ++starts;
    EXPECT_EQ(event.step(), 11) << "what an earlier run has of later steps is dropped";
    EXPECT_TRUE(steps.empty());
  }
  EXPECT_EQ(steps, (std::vector<std::int64_t>{20, 30, 40, 50, 60}));
  EXPECT_EQ(starts, 2) << "the first one of a folder drops nothing";
  EXPECT_EQ(files_of("train").size(), 3U) << "a file for each change of the reporter";
}

TEST_F(TensorBoard, HasTheConfusionMatrixOfEachEvaluation) {
  const auto confusion = std::make_shared<ConfusionMatrix>(3);
  confusion->add(0, 1, 4);
  const auto writer = make_tensorboard_writer(folder_.path(), CurveWriter::kOnly);
  writer->write(EvalMetrics{.step = 7, .result = {.confusion = confusion}, .on_validation = true});
  writer->write(Summary{.steps = 8, .test = {.confusion = confusion}, .validation = Evaluation()});
  for (const auto& [split, step] : {std::pair("validation", 7), std::pair("test", 8)}) {
    const auto events = events_of(split);
    ASSERT_EQ(events.size(), 3U) << "the version, the scalars and the picture";
    EXPECT_EQ(events[2].step(), step);
    EXPECT_EQ(events[2].summary().value(0).image().width(), 510);
  }
}

TEST_F(TensorBoard, DropsNoEvaluationsOfOtherAsynchronousWorkers) {
  leave_earlier_events();
  const auto writer = make_tensorboard_writer(folder_.path(), CurveWriter::kFirstWorker);
  writer->write(EvalMetrics{.step = 30});
  const auto test = events_of("test");
  ASSERT_EQ(test.size(), 2U);
  EXPECT_EQ(test[1].step(), 30);
}

TEST_F(TensorBoard, ShowsTheConfusionMatrixAsAPicture) {
  ConfusionMatrix confusion(2);
  Tensor logits = make_host_tensor({4, 2}, DType::kF32);
  Tensor targets = make_host_tensor({4}, DType::kI32);
  std::ranges::copy(std::vector<float>{1, 0, 0, 1, 1, 0, 1, 0}, logits.f32().begin());
  std::ranges::copy(std::vector<std::int32_t>{0, 1, 1, 1}, targets.i32().begin());
  confusion.add(logits, targets);
  add_confusion_image(folder_.path(), 300, confusion);
  const auto events = events_of("test");
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[1].step(), 300);
  const auto& value = events[1].summary().value(0);
  EXPECT_EQ(value.tag(), "confusion (row: true class, column: predicted class)");
  EXPECT_EQ(value.metadata().summary_description().find("Row: the true class"), 0U);
  EXPECT_EQ(value.image().width(), 512);
  EXPECT_EQ(value.image().height(), 512);
  EXPECT_TRUE(value.image().encoded_image_string().starts_with("\x89PNG"));
}

TEST_F(TensorBoard, IsRefusedAtTheStartWhereItCannotBeWritten) {
  EXPECT_TRUE(contains(
      message_of<FileError>([&] { make_tensorboard_writer("/proc/none", CurveWriter::kOnly); }),
      "--tensorboard"));
}

}  // namespace
}  // namespace syncopate
