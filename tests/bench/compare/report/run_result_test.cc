#include "bench/compare/report/run_result.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "models/base/errors.h"
#include "tests/support/contains.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/thrown.h"

namespace syncopate::bench {
namespace {

const std::string kHead =
    R"({"event":"run","label":"async","seed":7,"workers":2,"predicted_communication_seconds":0.25,"flags":[]})"
    "\n";
const std::string kEval =
    R"({"event":"eval","step":20,"epoch":1.0,"test_loss":0.5,"test_accuracy":0.9,"samples":10000,)"
    R"("seconds":0.2,"trained_samples":640,"trained_seconds":1.5})"
    "\n";
const std::string kSummary =
    R"({"event":"summary","steps":20,"samples":640,"seconds":1.5,"samples_per_second":426.7,)"
    R"("train_loss":0.4,"test_accuracy":0.9,"test_loss":null,"staleness_mean":1.5,"staleness_max":3,)"
    R"("input_wait_fraction":0.01,"communication_exposed_fraction":0.1,"weights_hash":"cafe",)"
    R"("staleness":[{"worker":0,"mean":1.5,"max":3,"counts":[1,2,0,1]}]})"
    "\n";

class RunFile : public testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove(file_); }
  std::optional<RunResult> read(const std::string& text) const {
    std::ofstream(file_, std::ios::binary) << text;
    return read_run(file_);
  }
  std::string error_of(const std::string& text) const {
    return message_of<FileError>([&] { read(text); });
  }

  const TemporaryFolder folder_;
  const std::filesystem::path file_ = folder_ / "run";
};

TEST_F(RunFile, IsReadCompletely) {
  const auto run = read(
      kHead +
      R"({"event":"step","step":10,"samples":320,"seconds":0.7,"loss":1.5,"samples_per_second":457})" +
      "\n" + kEval +
      R"({"event":"worker","worker":1,"steps":10,"samples":320,"seconds":1.5,"compute_seconds":1.0,)" +
      R"("communication_exposed_seconds":0.3,"peers_wait_seconds":null,"input_wait_seconds":0.1,)" +
      R"("bytes_sent":100,"bytes_received":null})" + "\n" +
      R"({"event":"of a later version","step":"any"})" + "\n" + kSummary);
  ASSERT_TRUE(run.has_value());
  EXPECT_EQ(run->label, "async");
  EXPECT_EQ(run->seed, 7U);
  EXPECT_EQ(run->workers, 2);
  EXPECT_EQ(run->predicted_communication_seconds, 0.25);
  EXPECT_FALSE(run->failure.has_value());
  ASSERT_EQ(run->training.size(), 1U);
  EXPECT_EQ(run->training[0].samples_per_second, 457.0);
  ASSERT_EQ(run->curve.size(), 1U);
  EXPECT_EQ(run->curve[0].samples, 640);
  EXPECT_EQ(run->curve[0].seconds, 1.5);
  EXPECT_EQ(run->curve[0].accuracy, 0.9);
  ASSERT_EQ(run->times.size(), 1U);
  EXPECT_EQ(run->times[0].communication_exposed_seconds, 0.3);
  EXPECT_FALSE(run->times[0].peers_wait_seconds.has_value());
  EXPECT_EQ(run->times[0].bytes_sent, 100);
  EXPECT_FALSE(run->times[0].bytes_received.has_value());
  EXPECT_EQ(run->summary.test.metric.value, 0.9);
  EXPECT_TRUE(std::isnan(run->summary.test.loss));  // the file has null for a test loss of NaN
  EXPECT_EQ(run->summary.weights_hash, "cafe");
  ASSERT_EQ(run->summary.staleness.size(), 1U);
  EXPECT_EQ(run->summary.staleness[0].histogram.counts(), (std::vector<std::int64_t>{1, 2, 0, 1}));
}

TEST_F(RunFile, HasTheReasonOfAFailure) {
  const auto run = read(kHead + kEval +
                        R"({"event":"failure","reason":"worker 1 fell silent"})"
                        "\n");
  ASSERT_TRUE(run.has_value());
  EXPECT_EQ(run->failure, "worker 1 fell silent");
  EXPECT_EQ(run->curve.size(), 1U);
  // The failure of a run counts even if another process of that run wrote its summary before.
  EXPECT_TRUE(read(kHead + kSummary + R"({"event":"failure","reason":"no"})")->failure.has_value());
}

TEST_F(RunFile, HasTheShareOfTheCpusThatOtherProcessesTook) {
  const auto with_share = [&](const std::string& share) {
    return *read(kHead + R"({"event":"machine","host":"n1","others_cpu_share":)" + share + "}\n" +
                 kSummary);
  };
  EXPECT_EQ(with_share("0.41").others_cpu_share, 0.41);
  EXPECT_TRUE(with_share("0.41").is_disturbed());
  EXPECT_FALSE(with_share("0.1").is_disturbed());
  EXPECT_FALSE(with_share("null").others_cpu_share.has_value());
  EXPECT_FALSE(read(kHead + kSummary)->others_cpu_share.has_value());
  EXPECT_FALSE(read(kHead + kSummary)->is_disturbed());
}

TEST_F(RunFile, HasAnAscendingCurve) {
  std::string earlier = kEval;
  earlier.replace(earlier.find("\"step\":20"), 9, "\"step\":10");
  const auto run = read(kHead + kEval + earlier + kSummary);
  EXPECT_EQ(run->curve.at(0).step, 10);
  EXPECT_EQ(run->curve.at(1).step, 20);
}

std::string eval_at(int step, double seconds, double began_at) {
  return R"({"event":"eval","step":)" + std::to_string(step) +
         R"(,"test_loss":0.5,"test_accuracy":0.9,"seconds":0.5,"trained_samples":)" +
         std::to_string(32 * step) + R"(,"trained_seconds":)" + std::to_string(seconds) +
         R"(,"began_at":)" + std::to_string(began_at) + "}\n";
}

std::string begin_at(double began_at, bool is_synchronous) {
  return R"({"event":"begin","step":0,"samples":0,"in_step":)" +
         std::string(is_synchronous ? "true" : "false") + R"(,"began_at":)" +
         std::to_string(began_at) + "}\n";
}

const std::string kKilledHead =
    R"({"event":"run","label":"a","seed":1,"workers":1,"trouble":["--kill","worker=0,at=3s"]})"
    "\n";

TEST_F(RunFile, OfAKilledJobCountsTheTimeUntilItContinued) {
  std::string summary = kSummary;
  summary.insert(summary.size() - 2, R"(,"began_at":110)");
  const auto run = read(kKilledHead + begin_at(100, true) + eval_at(10, 1.0, 100) +
                        begin_at(110, true) + eval_at(20, 1.5, 110) + summary);
  ASSERT_TRUE(run.has_value());
  ASSERT_FALSE(run->failure) << *run->failure;
  EXPECT_DOUBLE_EQ(run->curve.at(0).seconds, 1.0);
  EXPECT_DOUBLE_EQ(run->curve.at(1).seconds, 11.0)
      << "10 s minus an evaluation of 0.5 s, plus 1.5 s";
  EXPECT_DOUBLE_EQ(run->summary.seconds, 11.0);
  EXPECT_DOUBLE_EQ(run->summary.samples_per_second, 640 / 11.0);
}

TEST_F(RunFile, HasTheTimeThatEarlierEvaluationsPausedTraining) {
  auto run =
      read(kHead + begin_at(100, true) + eval_at(10, 1.0, 100) + eval_at(20, 2.0, 100) + kSummary);
  EXPECT_DOUBLE_EQ(run->curve.at(0).paused_seconds, 0.0);
  EXPECT_DOUBLE_EQ(run->curve.at(1).paused_seconds, 0.5);
  run =
      read(kHead + begin_at(100, false) + eval_at(10, 1.0, 100) + eval_at(20, 2.0, 100) + kSummary);
  EXPECT_DOUBLE_EQ(run->curve.at(1).paused_seconds, 0.0) << "other workers went on training";
}

TEST_F(RunFile, FailsIfItsEvaluationsGoBackInTime) {
  const auto run = read(kHead + eval_at(10, 0.6, 100) + eval_at(20, 0.169, 100) + kSummary);
  ASSERT_TRUE(run->failure.has_value());
  EXPECT_TRUE(contains(*run->failure, "step 20"));
}

TEST_F(RunFile, HasNoResultIfTheRunWasInterrupted) {
  EXPECT_FALSE(read("").has_value());
  EXPECT_FALSE(read(kHead).has_value());
  EXPECT_FALSE(read(kHead + kEval).has_value());
  // A metrics file whose last line, the summary, is cut short at any position has no result.
  for (std::size_t length = 1; length + 2 < kSummary.size(); length += 7) {
    EXPECT_FALSE(read(kHead + kSummary.substr(0, length)).has_value()) << length;
  }
}

TEST_F(RunFile, MayLackTheLastEndOfLine) {
  EXPECT_TRUE(read(kHead + kSummary.substr(0, kSummary.size() - 1)).has_value());
}

TEST_F(RunFile, ThatIsMalformedIsAnErrorNamingFileAndLine) {
  const std::string place = file_.string() + ", line 2: ";
  EXPECT_TRUE(contains(error_of(kHead + "{\"event\":\n" + kSummary), place + "is not JSON"));
  EXPECT_TRUE(contains(error_of(kHead + "[1]\n" + kSummary), place + "is not an object"));
  EXPECT_TRUE(contains(error_of(kHead + R"({"event":"eval","step":1})" + "\n"),
                       place + "has no \"trained_samples\""));
  EXPECT_TRUE(contains(error_of(kHead + R"({"event":"failure","reason":3})" + "\n"),
                       place + "\"reason\" is 3"));
  EXPECT_TRUE(contains(error_of(kEval), "line 1: the first line is not"));
}

TEST_F(RunFile, ThatIsMissingIsAnError) { EXPECT_THROW(read_run(file_), FileError); }

}  // namespace
}  // namespace syncopate::bench
