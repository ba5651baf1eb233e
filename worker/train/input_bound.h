// Tells the user that training waits for its input. Called by the training loops.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

namespace syncopate {

// The properties of a task's input that determine the input's speed.
struct InputMeans {
  int cpus = 1;             // CPUs of this task
  bool is_encoded = false;  // whether samples are decoded when they are read
  bool is_tuned = false;    // whether --input-threads is auto
};

struct InputWait {
  std::int64_t steps = 0;
  double step_seconds = 0.0;  // time of all steps, including waits
  double wait_seconds = 0.0;
  int readers = 1;       // reader threads at the end
  int most_readers = 0;  // the most reader threads that --prefetch allows; 0: no limit
};

// The input of one of the tasks that train a step together.
struct TaskInput {
  int task = 0;
  InputWait wait;
  InputMeans means;

  // Returns the members as numbers, in the form in which the tasks exchange them.
  static constexpr int kNumbers = 8;
  std::array<double, kNumbers> as_numbers() const;
};

// Returns the input of the task that spends the largest fraction of its step time waiting for its
// input. gathered: the numbers of as_numbers() of all tasks, in the order of tasks.
TaskInput longest_wait(std::span<const double> gathered);

// Whether there were enough steps, and the steps took enough time, to judge whether training waits
// for its input.
bool is_enough(const InputWait& wait);

// Returns a line such as "input-bound: 41 % of the step waits for decode; 6 of 8 CPUs decode";
// empty if steps wait for less than 5 % of their time, or if is_enough() is false.
std::string describe_input_bound(const InputWait& wait, const InputMeans& means);

}  // namespace syncopate
