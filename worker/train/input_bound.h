// Says, for a user, that training waits for its input. Called by the train loops.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

namespace syncopate {

// The input of a task, as far as it matters for its speed.
struct InputMeans {
  int cpus = 1;             // CPUs of this task
  bool is_encoded = false;  // samples are decoded when they are read
  bool is_tuned = false;    // --input-threads auto
};

struct InputWait {
  std::int64_t steps = 0;
  double step_seconds = 0.0;  // of all steps, with the waits
  double wait_seconds = 0.0;
  int readers = 1;       // reader threads at the end
  int most_readers = 0;  // those that --prefetch allows; 0: it allows as many as help
};

// The input of one of the tasks that train a step together.
struct TaskInput {
  int task = 0;
  InputWait wait;
  InputMeans means;

  // The same as numbers, which tasks gather.
  static constexpr int kNumbers = 8;
  std::array<double, kNumbers> as_numbers() const;
};

// Returns the input of the task that waits for its input for the largest part of its steps' time.
// gathered: the numbers of all tasks, in their order.
TaskInput longest_wait(std::span<const double> gathered);

// Whether there are enough steps, and enough time in them, to say whether they wait.
bool is_enough(const InputWait& wait);

// Returns a line such as "input-bound: 41 % of the step waits for decode; 6 of 8 CPUs decode";
// empty if steps wait for less than 5 % of their time, or if there are too few to say.
std::string describe_input_bound(const InputWait& wait, const InputMeans& means);

}  // namespace syncopate
