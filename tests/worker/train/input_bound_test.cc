#include "worker/train/input_bound.h"

#include <gtest/gtest.h>

#include <vector>

namespace syncopate {
namespace {

TEST(InputBound, NamesTheShareOfTheStepAndTheCpusThatDecode) {
  const InputWait wait{.steps = 100, .step_seconds = 10.0, .wait_seconds = 4.1, .readers = 6};
  const InputMeans means{.cpus = 8, .is_encoded = true, .is_tuned = true};
  EXPECT_EQ(describe_input_bound(wait, means),
            "input-bound: 41 % of the step waits for decode; 6 of 8 CPUs decode");
  EXPECT_EQ(describe_input_bound({100, 10.0, 4.1, 1}, means),
            "input-bound: 41 % of the step waits for decode; 1 of 8 CPUs decodes");
}

TEST(InputBound, RecommendsToTuneAFixedNumberOfThreads) {
  EXPECT_EQ(describe_input_bound({100, 10.0, 0.6, 1}, {.cpus = 4}),
            "input-bound: 6 % of the step waits for data; 1 of 4 CPUs reads; --input-threads auto "
            "finds how many help");
  EXPECT_EQ(describe_input_bound({100, 10.0, 0.6, 2}, {.cpus = 1}),
            "input-bound: 6 % of the step waits for data; 1 of 1 CPU reads");
}

TEST(InputBound, NamesAPrefetchThatAllowsNoMoreReaders) {
  const InputMeans means{.cpus = 2, .is_encoded = true, .is_tuned = true};
  InputWait wait{.steps = 100, .step_seconds = 10.0, .wait_seconds = 5.2, .most_readers = 1};
  EXPECT_EQ(describe_input_bound(wait, means),
            "input-bound: 52 % of the step waits for decode; 1 of 2 CPUs decodes; this --prefetch "
            "allows no more readers, and --prefetch auto does");
  wait.most_readers = 2;
  EXPECT_EQ(describe_input_bound(wait, means),
            "input-bound: 52 % of the step waits for decode; 1 of 2 CPUs decodes");
}

TEST(InputBound, IsThatOfTheTaskThatWaitsForTheLargestPartOfItsTime) {
  std::vector<double> gathered;
  const auto add = [&](const InputWait& wait, const InputMeans& means) {
    const TaskInput input{.wait = wait, .means = means};
    for (const double number : input.as_numbers()) gathered.push_back(number);
  };
  add({100, 9.0, 0.2, 3, 4}, {.cpus = 8});
  add({100, 10.0, 4.1, 6}, {.cpus = 16, .is_encoded = true, .is_tuned = true});
  add({100, 20.0, 5.0, 1}, {.cpus = 2});
  const TaskInput slowest = longest_wait(gathered);
  EXPECT_EQ(slowest.task, 1);
  EXPECT_TRUE(is_enough(slowest.wait));
  EXPECT_EQ(describe_input_bound(slowest.wait, slowest.means),
            "input-bound: 41 % of the step waits for decode; 6 of 16 CPUs decode");
}

TEST(InputBound, SaysNothingOfAFastInputOrAShortRun) {
  const InputMeans means{.cpus = 8, .is_encoded = true};
  EXPECT_EQ(describe_input_bound({100, 10.0, 0.4, 1}, means), "");
  EXPECT_EQ(describe_input_bound({9, 10.0, 9.0, 1}, means), "");
  EXPECT_EQ(describe_input_bound({100, 0.4, 0.3, 1}, means), "");
  EXPECT_EQ(describe_input_bound({}, means), "");
}

}  // namespace
}  // namespace syncopate
