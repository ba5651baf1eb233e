#include "worker/train/metrics.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "models/base/errors.h"
#include "models/base/file_descriptor.h"
#include "tests/support/contains.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/thrown.h"

namespace syncopate {
namespace {

using Json = nlohmann::ordered_json;

class MetricsTest : public testing::Test {
 protected:
  TemporaryFolder folder_;
  std::filesystem::path path_ = folder_.path() / "metrics.jsonl";

  std::vector<Json> lines() const {
    std::vector<Json> parsed;
    std::ifstream file(path_);
    for (std::string line; std::getline(file, line);) {
      parsed.push_back(Json::parse(line, nullptr, false));
    }
    return parsed;
  }
};

std::vector<std::string> keys(const Json& json) {
  std::vector<std::string> names;
  for (const auto& [name, value] : json.items()) names.push_back(name);
  return names;
}

TEST_F(MetricsTest, LinesCanBeReadDuringTheRun) {
  const auto metrics = make_metrics_writer(path_, false);
  metrics->write(StepMetrics{.step = 100, .epoch = 0.5, .loss = 0.25, .samples = 6400});
  ASSERT_EQ(lines().size(), 1U);
  metrics->write(EvalMetrics{.step = 200, .result = {.loss = 0.5, .metric = {.value = 0.75}}});
  ASSERT_EQ(lines().size(), 2U);
  EXPECT_EQ(lines()[0]["event"], "step");
  EXPECT_EQ(lines()[0]["step"], 100);
  EXPECT_EQ(lines()[0]["loss"], 0.25);
  EXPECT_EQ(lines()[0]["samples"], 6400);
  EXPECT_EQ(lines()[1]["event"], "eval");
  EXPECT_EQ(lines()[1]["test_accuracy"], 0.75);
}

TEST_F(MetricsTest, LinesHaveTheMetricOfTheLoss) {
  const MetricValue metric{LossKind::kMeanSquaredError, 0.75};
  const auto metrics = make_metrics_writer(path_, false);
  metrics->write(StepMetrics{.metric = metric});
  const EvalMetrics evaluation{.step = 3, .result = {.metric = metric}, .on_validation = true};
  metrics->write(evaluation);
  metrics->write(Summary{.test = {.metric = metric}, .validation = Evaluation{.metric = metric}});
  EXPECT_EQ(lines()[0]["mae"], 0.75);
  EXPECT_EQ(lines()[1]["val_mae"], 0.75);
  EXPECT_EQ(lines()[2]["test_mae"], 0.75);
  EXPECT_EQ(lines()[2]["val_mae"], 0.75);
  EXPECT_FALSE(lines()[2].contains("test_accuracy"));
  EXPECT_EQ(describe(evaluation),
            "step 3, epoch 0.00: validation mae 0.75, validation loss 0.0000 (0 samples, 0.0 s)");
}

// Of 8 pixels of class 0, 6 are found, and 2 of the 4 pixels of class 1; no pixel has class 2.
TEST_F(MetricsTest, LinesOfLabelMapsHaveTheQualityOfEachClass) {
  const std::vector<ClassCounts> classes = {{8, 8, 6}, {4, 4, 2}, {}};
  const auto metrics = make_metrics_writer(path_, false);
  metrics->write(EvalMetrics{.result = {.classes = classes}, .on_validation = true});
  metrics->write(
      Summary{.test = {.classes = classes}, .validation = Evaluation{.classes = {{1, 1, 1}}}});
  metrics->write(EvalMetrics{});
  const Json expected = Json::parse(R"([
      {"class": 0, "samples": 8, "precision": 0.75, "recall": 0.75, "iou": 0.6},
      {"class": 1, "samples": 4, "precision": 0.5, "recall": 0.5, "iou": 0.3333333333333333},
      {"class": 2, "samples": 0, "precision": null, "recall": null, "iou": null}])");
  EXPECT_EQ(lines()[0]["val_classes"], expected);
  EXPECT_EQ(lines()[1]["test_classes"], expected);
  EXPECT_EQ(lines()[1]["val_classes"].size(), 1U);
  EXPECT_FALSE(lines()[2].contains("test_classes"));
}

TEST_F(MetricsTest, ADeferredEvaluationNamesTheClockOfItsSeconds) {
  const auto metrics = make_metrics_writer(path_, false);
  metrics->write(BeginMetrics{.began_at = 20.5});
  metrics->write(EvalMetrics{.step = 1});
  metrics->write(EvalMetrics{.step = 2, .began_at = 10.25});
  EXPECT_EQ(lines()[1]["began_at"], 20.5);
  EXPECT_EQ(lines()[2]["began_at"], 10.25);
}

TEST_F(MetricsTest, BeginsWithHeadAndNormalizationWhereARunHasThem) {
  const auto metrics = make_metrics_writer(path_, false);
  metrics->write(BeginMetrics{});
  metrics->write(BeginMetrics{.head = "dense:16", .normalize = "none"});
  EXPECT_FALSE(lines()[0].contains("head") || lines()[0].contains("normalize"));
  EXPECT_EQ(lines()[1]["head"], "dense:16");
  EXPECT_EQ(lines()[1]["normalize"], "none");
}

TEST_F(MetricsTest, SummaryHasTheKeysThatScriptsRelyOn) {
  make_metrics_writer(path_, false)->write(Summary{.strategy = "one-device", .steps = 3});
  const std::vector<std::string> found = keys(lines().at(0));
  const std::vector<std::string> promised = {"event",
                                             "strategy",
                                             "model",
                                             "replicas",
                                             "global_batch",
                                             "steps",
                                             "samples",
                                             "seconds",
                                             "samples_per_second",
                                             "train_loss",
                                             "test_accuracy",
                                             "test_loss",
                                             "staleness_mean",
                                             "staleness_max",
                                             "input_wait_fraction",
                                             "communication_exposed_fraction",
                                             "peak_memory_bytes"};
  ASSERT_GE(found.size(), promised.size());
  EXPECT_EQ(std::vector<std::string>(found.begin(), found.begin() + 17), promised);
  EXPECT_EQ(lines()[0]["strategy"], "one-device");
}

TEST_F(MetricsTest, HaveTheLossScaleWhereLossesAreScaled) {
  const auto metrics = make_metrics_writer(path_, false);
  metrics->write(StepMetrics{.step = 1});
  metrics->write(StepMetrics{.step = 2, .loss_scale = LossScaleState{32768.0F, 7, 1}});
  metrics->write(WorkerMetrics{.worker = 1, .skipped_steps = 4});
  EXPECT_FALSE(lines().at(0).contains("loss_scale"));
  EXPECT_EQ(lines().at(1).at("loss_scale"), 32768.0);
  EXPECT_EQ(lines().at(1).at("skipped_steps"), 1);
  EXPECT_EQ(lines().at(2).at("skipped_steps"), 4);
}

TEST_F(MetricsTest, NameTheProcessWhoseClockTheirSecondsUse) {
  const auto metrics = make_metrics_writer(path_, false);
  metrics->write(
      BeginMetrics{.step = 3, .samples = 96, .is_synchronous = false, .began_at = 1000.25});
  metrics->write(EvalMetrics{.step = 4});
  metrics->write(Summary{.steps = 4});
  ASSERT_EQ(lines().size(), 3U);
  EXPECT_EQ(lines()[0]["event"], "begin");
  EXPECT_EQ(lines()[0]["in_step"], false);
  for (const Json& line : lines()) EXPECT_EQ(line["began_at"], 1000.25) << line;
}

TEST_F(MetricsTest, WriteNullForNaN) {
  make_metrics_writer(path_, false)
      ->write(StepMetrics{.step = 1, .loss = std::numeric_limits<double>::quiet_NaN()});
  EXPECT_TRUE(lines().at(0)["loss"].is_null());
}

TEST_F(MetricsTest, OfAResumedRunAreAppended) {
  make_metrics_writer(path_, false)->write(StepMetrics{.step = 1});
  make_metrics_writer(path_, true)->write(StepMetrics{.step = 2});
  ASSERT_EQ(lines().size(), 2U);
  EXPECT_EQ(lines()[1]["step"], 2);
}

TEST_F(MetricsTest, OfANewRunReplaceTheOldOnes) {
  make_metrics_writer(path_, false)->write(StepMetrics{.step = 1});
  make_metrics_writer(path_, false)->write(StepMetrics{.step = 2});
  ASSERT_EQ(lines().size(), 1U);
  EXPECT_EQ(lines()[0]["step"], 2);
}

TEST_F(MetricsTest, SurviveALineThatAKilledRunLeftBroken) {
  std::ofstream(path_) << R"({"event":"st)";
  make_metrics_writer(path_, true)->write(StepMetrics{.step = 2});
  ASSERT_EQ(lines().size(), 2U);
  EXPECT_EQ(lines()[1]["step"], 2);
}

TEST_F(MetricsTest, SummaryHasTheStalenessOfEachWorker) {
  make_metrics_writer(path_, false)
      ->write(Summary{.staleness_mean = 1.25,
                      .staleness_max = 3,
                      .staleness = {{0, ps::StalenessHistogram::of({1, 2}, 2.0, 1)},
                                    {2, ps::StalenessHistogram::of({0, 0, 0, 1}, 3.0, 3)}}});
  const Json line = lines().at(0);
  EXPECT_EQ(line["staleness_mean"], 1.25);
  EXPECT_EQ(line["staleness_max"], 3);
  EXPECT_EQ(line["staleness"].dump(),
            R"([{"worker":0,"mean":0.6666666666666666,"max":1,"counts":[1,2]},)"
            R"({"worker":2,"mean":3.0,"max":3,"counts":[0,0,0,1]}])");
}

TEST_F(MetricsTest, OfSynchronousReplicasHaveNoStaleness) {
  make_metrics_writer(path_, false)->write(Summary{});
  EXPECT_EQ(lines().at(0)["staleness"].dump(), "[]");
  EXPECT_EQ(lines().at(0)["staleness_max"], 0);
}

TEST_F(MetricsTest, OfAWorkerThatNeverReportsLeaveTheFileUnchanged) {
  const auto metrics = make_late_metrics_writer(path_);
  EXPECT_FALSE(std::filesystem::exists(path_));
  metrics->write(StepMetrics{.step = 1});
  EXPECT_EQ(lines().size(), 1U);
}

TEST_F(MetricsTest, OfAlternatingWorkersAreInOrder) {
  const auto first = make_late_metrics_writer(path_);
  const auto second = make_late_metrics_writer(path_);
  first->write(StepMetrics{.step = 1, .staleness_mean = 0.5, .staleness_max = 2});
  second->write(StepMetrics{.step = 2});
  first->write(EvalMetrics{.step = 3});
  ASSERT_EQ(lines().size(), 3U);
  EXPECT_EQ(lines()[0]["staleness_mean"], 0.5);
  EXPECT_EQ(lines()[0]["staleness_max"], 2);
  EXPECT_EQ(lines()[1]["step"], 2);
  EXPECT_EQ(lines()[2]["event"], "eval");
}

TEST_F(MetricsTest, OfAWorkerThatJoinsDoNotBreakTheLineOfAnother) {
  const auto first = make_metrics_writer(path_, false);
  const std::vector<std::int64_t> counts(5000, 1234567);  // make a line of ten pages
  const Summary summary{.staleness = {{0, ps::StalenessHistogram::of(counts, 0.0, 4999)}}};
  constexpr std::size_t kSummaries = 200;
  std::size_t late = 0;
  std::atomic<bool> is_done{false};
  std::thread writer([&] {
    for (std::size_t i = 0; i < kSummaries; ++i) first->write(summary);
    is_done = true;
  });
  for (; !is_done; ++late) make_late_metrics_writer(path_)->write(StepMetrics{.step = 1});
  writer.join();
  EXPECT_EQ(lines().size(), kSummaries + late) << "lines() fails on an empty one";
}

TEST_F(MetricsTest, OfALongSummaryAreOneLine) {
  const std::vector<std::int64_t> counts(10000, 1234567);  // make a line longer than any buffer
  make_metrics_writer(path_, false)
      ->write(Summary{.staleness = {{0, ps::StalenessHistogram::of(counts, 0.0, 9999)}}});
  ASSERT_EQ(lines().size(), 1U);
  EXPECT_EQ(lines()[0]["staleness"][0]["counts"].size(), counts.size());
}

TEST_F(MetricsTest, AreNotWrittenWithoutAPath) {
  EXPECT_NO_THROW(make_metrics_writer("", false)->write(Summary{}));
}

TEST_F(MetricsTest, NameTheFileThatCannotBeOpened) {
  EXPECT_TRUE(contains(message_of<FileError>([&] {
                         make_metrics_writer(folder_.path() / "absent" / "metrics.jsonl", false);
                       }),
                       "absent/metrics.jsonl"));
}

TEST_F(MetricsTest, AreRefusedForAPipeThatNobodyReads) {
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  EXPECT_TRUE(contains(message_of<FileError>([&] { make_metrics_writer(path_, false); }),
                       "start its reader first"));
}

TEST_F(MetricsTest, DoNotWaitForTheReaderOfAPipe) {
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  const FileDescriptor reader(open(path_.c_str(), O_RDONLY | O_NONBLOCK));
  ASSERT_TRUE(reader);
  const auto metrics = make_metrics_writer(path_, false);
  testing::internal::CaptureStderr();
  for (int step = 0; step < 2000; ++step) metrics->write(StepMetrics{.step = step});
  EXPECT_TRUE(contains(testing::internal::GetCapturedStderr(), "training goes on"));
  std::string first(10, '\0');
  EXPECT_EQ(read(reader.get(), first.data(), first.size()), 10);
  EXPECT_EQ(first, "{\"event\":\"");
}

// Lets this process write only the first bytes of every file, as a full disk would.
class FullDisk {
 public:
  explicit FullDisk(rlim_t bytes) : ignored_(std::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{.rlim_cur = bytes, .rlim_max = before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;
  ~FullDisk() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, ignored_);
  }

 private:
  rlimit before_{};
  void (*ignored_)(int);
};

TEST_F(MetricsTest, OnAFullDiskAreWrittenAgainWhenThereIsRoom) {
  const auto metrics = make_metrics_writer(path_, false);
  metrics->write(StepMetrics{.step = 1});
  testing::internal::CaptureStderr();
  {
    const FullDisk disk(std::filesystem::file_size(path_) + 10);
    metrics->write(StepMetrics{.step = 2});
    metrics->write(StepMetrics{.step = 3});
  }
  metrics->write(StepMetrics{.step = 4});
  const std::string logged = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(contains(logged, path_.string()));
  EXPECT_EQ(std::ranges::count(logged, '\n'), 1) << logged;
  const std::vector<Json> found = lines();
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found[0].at("step"), 1);
  EXPECT_TRUE(found[1].is_discarded()) << "the part that fitted";
  EXPECT_EQ(found[2].at("step"), 4);
}

}  // namespace
}  // namespace syncopate
