// Tests deferred evaluations: snapshots in files, from the moment when they are taken to their
// evaluation.
#include "worker/train/deferred_evaluations.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <fstream>

#include "models/base/errors.h"
#include "tests/support/contains.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/thrown.h"

namespace syncopate {
namespace {

Snapshot two_values_and_a_statistic(float first) {
  Snapshot copy{make_host_tensor({2}, DType::kF32), {}, make_host_tensor({1}, DType::kF32)};
  std::ranges::copy(std::vector<float>{first, first + 1}, copy.values.f32().begin());
  copy.state.f32()[0] = first + 2;
  return copy;
}

EvalMetrics at_step(std::int64_t step) {
  return {.step = step,
          .epoch = 0.5,
          .trained_samples = 16 * step,
          .trained_seconds = 0.25 * static_cast<double>(step),
          .began_at = 1000.5};
}

class DeferredEvaluationsTest : public testing::Test {
 protected:
  DeferredEvaluationsOptions of_run() const {
    return {.folder = folder_.path(), .is_of_run = true};
  }
  // Evaluates all snapshots and returns their steps in the order of evaluation.
  static std::vector<std::int64_t> evaluate(DeferredEvaluations& kept) {
    std::vector<std::int64_t> steps;
    kept.evaluate([&](const EvalMetrics& moment, const Snapshot&) {
      steps.push_back(moment.step);
      return true;
    });
    return steps;
  }
  static std::vector<std::int64_t> steps(std::initializer_list<std::int64_t> list) { return list; }

  TemporaryFolder folder_;
};

TEST_F(DeferredEvaluationsTest, HaveTheStepAndTimeOfTheirSnapshot) {
  DeferredEvaluations kept({.folder = folder_.path()});
  kept.add(at_step(3), two_values_and_a_statistic(7.0F));
  kept.evaluate([&](const EvalMetrics& moment, const Snapshot& copy) {
    EXPECT_EQ(moment.step, 3);
    EXPECT_EQ(moment.epoch, 0.5);
    EXPECT_EQ(moment.trained_samples, 48);
    EXPECT_EQ(moment.trained_seconds, 0.75);
    EXPECT_EQ(moment.began_at, 1000.5);
    EXPECT_EQ(copy.values.f32()[1], 8.0F);
    EXPECT_EQ(copy.state.f32()[0], 9.0F);
    return true;
  });
  EXPECT_EQ(kept.size(), 0);
}

TEST_F(DeferredEvaluationsTest, OutsideOfTheFolderOfARunEndWithTheirProcess) {
  DeferredEvaluations kept({.folder = folder_.path()});
  kept.add(at_step(3), two_values_and_a_statistic(7.0F));
  EXPECT_EQ(kept.size(), 1);
  EXPECT_EQ(folder_.num_files(), 0U) << "however it ends";
}

TEST_F(DeferredEvaluationsTest, NeedAFolderFromTheBeginning) {
  EXPECT_THROW(DeferredEvaluations({.folder = folder_.path() / "absent"}), FileError);
}

TEST_F(DeferredEvaluationsTest, OfAProcessThatHasEndedAreTakenOverInStepOrder) {
  {
    DeferredEvaluations killed(of_run());
    killed.add(at_step(2), two_values_and_a_statistic(2.0F));
    killed.add(at_step(6), two_values_and_a_statistic(6.0F));
  }
  DeferredEvaluations kept(of_run());
  kept.add(at_step(4), two_values_and_a_statistic(4.0F));
  kept.take_over();
  EXPECT_EQ(evaluate(kept), steps({2, 4, 6}));
  EXPECT_EQ(folder_.num_files(), 0U);
}

TEST_F(DeferredEvaluationsTest, OfALivingProcessAreNotTakenOver) {
  DeferredEvaluations other(of_run());
  other.add(at_step(2), two_values_and_a_statistic(2.0F));
  DeferredEvaluations kept(of_run());
  kept.take_over();
  EXPECT_EQ(evaluate(kept), steps({}));
  kept.remove_earlier_run();
  EXPECT_EQ(evaluate(other), steps({2}));
}

TEST_F(DeferredEvaluationsTest, ThatWereNotMadeAreMadeByTheNextProcess) {
  {
    DeferredEvaluations stopped(of_run());
    for (const std::int64_t step : {2, 4, 6}) {
      stopped.add(at_step(step), two_values_and_a_statistic(0.0F));
    }
    stopped.evaluate([](const EvalMetrics& moment, const Snapshot&) { return moment.step < 4; });
    EXPECT_EQ(stopped.size(), 2);
  }
  DeferredEvaluations resumed(of_run());
  resumed.take_over();
  EXPECT_EQ(evaluate(resumed), steps({4, 6}));
}

TEST_F(DeferredEvaluationsTest, ThatAKilledProcessLeftIncompleteAreIgnored) {
  std::filesystem::path file;
  {
    DeferredEvaluations killed(of_run());
    killed.add(at_step(2), two_values_and_a_statistic(2.0F));
    killed.add(at_step(4), two_values_and_a_statistic(4.0F));
    file = DeferredEvaluationFile::in_folder(folder_.path()).at(0);
  }
  std::filesystem::resize_file(file, std::filesystem::file_size(file) - 1);
  DeferredEvaluations kept(of_run());
  kept.take_over();
  EXPECT_EQ(evaluate(kept), steps({2}));
}

TEST_F(DeferredEvaluationsTest, OfAnEarlierRunAreRemoved) {
  {
    DeferredEvaluations earlier(of_run());
    earlier.add(at_step(2), two_values_and_a_statistic(2.0F));
  }
  std::ofstream(folder_.path() / "notes.txt") << "of another program";
  DeferredEvaluations(of_run()).remove_earlier_run();
  EXPECT_EQ(folder_.num_files(), 1U);
}

TEST_F(DeferredEvaluationsTest, ThatDoNotFitOnTheDiskAreAnErrorAndEarlierOnesStay) {
  struct LimitedFileSize {
    LimitedFileSize() {
      ::getrlimit(RLIMIT_FSIZE, &before);
      const rlimit small{.rlim_cur = 100, .rlim_max = before.rlim_max};  // a record has 76 bytes
      ::setrlimit(RLIMIT_FSIZE, &small);
      handler = std::signal(SIGXFSZ, SIG_IGN);
    }
    ~LimitedFileSize() {
      ::setrlimit(RLIMIT_FSIZE, &before);
      std::signal(SIGXFSZ, handler);
    }
    rlimit before{};
    void (*handler)(int) = nullptr;
  };
  {
    DeferredEvaluations full(of_run());
    full.add(at_step(2), two_values_and_a_statistic(2.0F));
    const LimitedFileSize limit;
    EXPECT_TRUE(contains(
        message_of<FileError>([&] { full.add(at_step(4), two_values_and_a_statistic(4.0F)); }),
        "store a deferred evaluation in " + folder_.path().string(), "or give --eval-when due"));
  }
  DeferredEvaluations kept(of_run());
  kept.take_over();
  EXPECT_EQ(evaluate(kept), steps({2}));
}

}  // namespace
}  // namespace syncopate
