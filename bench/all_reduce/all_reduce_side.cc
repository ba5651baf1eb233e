#include "bench/all_reduce/all_reduce_side.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "bench/harness/measure.h"
#include "models/base/errors.h"

namespace syncopate::bench {
namespace {

constexpr std::chrono::seconds kBarrierTimeout(120);
// Bounds the seconds that an algorithm is tried for, after warm-up, when one of several must be
// chosen.
constexpr double kTrialSeconds = 0.1;
constexpr int kFewestTrialCalls = 3;
constexpr int kMostTrialCalls = 50;
// Inputs are small whole numbers. Their sums are exact in f32 in any order and over any number of
// ranks.
constexpr std::int64_t kPeriod = 256;

void write_input(std::span<float> input, int rank) {
  float* const values = input.data();
  const auto count = static_cast<std::int64_t>(input.size());
  for (std::int64_t i = 0; i < count; ++i) values[i] = static_cast<float>(i % kPeriod + rank);
}

void require_sum(std::span<const float> result, int size) {
  const int of_ranks = size * (size - 1) / 2;
  for (std::size_t i = 0; i < result.size(); ++i) {
    const auto index = static_cast<std::int64_t>(i);
    const auto expected = static_cast<float>(index % kPeriod * size + of_ranks);
    if (result[i] == expected) continue;
    std::ostringstream message;
    message << "a wrong sum: element " << i << " of " << result.size() << " is " << result[i]
            << ", expected " << expected;
    throw PeerError(message.str());
  }
}

class Measurement {
 public:
  Measurement(RankGroup& group, Reducer& reducer) : group_(group), reducer_(reducer) {}

  struct Answer {
    std::vector<double> seconds;
    std::string algorithm;
  };

  Answer run(std::int64_t bytes, int iterations) {
    const auto elements = bytes / static_cast<std::int64_t>(sizeof(float));
    const std::size_t algorithm = choose(elements);
    reducer_.prepare(algorithm, elements);
    time_calls(1);  // One uncounted call wakes sleeping threads.
    Answer answer{time_calls(iterations), reducer_.algorithms().at(algorithm)};
    require_sum(reducer_.result(), group_.size());
    return answer;
  }

 private:
  // Returns the slowest rank's time of each measured call on rank 0; empty on the other ranks.
  std::vector<double> time_calls(int calls) {
    const Deadline deadline = Deadline::after(kBarrierTimeout);
    const std::span<double> mine = group_.row(group_.rank());
    for (int call = 0; call < calls; ++call) {
      write_input(reducer_.input(), group_.rank());
      group_.barrier(deadline);
      const auto start = SteadyClock::now();
      reducer_.all_reduce();
      mine[static_cast<std::size_t>(call)] = seconds_since(start);
    }
    return slowest_of_ranks(group_, static_cast<std::size_t>(calls), deadline);
  }

  // Returns how many trial calls each rank makes. Rank 0 decides from `first_seconds`, the times of
  // its first calls, and sends the number to the other ranks.
  int trial_calls(const std::vector<double>& first_seconds) {
    int calls = 0;
    if (group_.rank() == 0) {
      const double fitting = kTrialSeconds / median(first_seconds);
      calls = static_cast<int>(std::clamp<double>(fitting, kFewestTrialCalls, kMostTrialCalls));
    }
    return std::stoi(group_.share(std::to_string(calls)));
  }

  // Returns the fastest algorithm at a size. All ranks try every algorithm once per size, and rank
  // 0 chooses.
  std::size_t choose(std::int64_t elements) {
    const auto known = chosen_.find(elements);
    if (known != chosen_.end()) return known->second;
    const std::size_t count = reducer_.algorithms().size();
    std::size_t best = 0;
    double best_seconds = 0.0;
    for (std::size_t algorithm = 0; count > 1 && algorithm < count; ++algorithm) {
      reducer_.prepare(algorithm, elements);
      const std::vector<double> seconds = time_calls(trial_calls(time_calls(kFewestTrialCalls)));
      if (group_.rank() != 0) continue;
      const double middle = median(seconds);
      if (algorithm == 0 || middle < best_seconds) {
        best = algorithm;
        best_seconds = middle;
      }
    }
    best = std::stoul(group_.share(std::to_string(best)));
    chosen_[elements] = best;
    return best;
  }

  RankGroup& group_;
  Reducer& reducer_;
  std::map<std::int64_t, std::size_t> chosen_;  // Maps numbers of elements to algorithms.
};

}  // namespace

void serve_all_reduce(RankGroup& group, Reducer& reducer, std::string_view description) {
  Measurement measurement(group, reducer);
  serve_commands(group, description, [&](const std::string& command) -> nlohmann::json {
    std::istringstream words(command);
    std::string verb;
    std::int64_t bytes = 0;
    int iterations = 0;
    if (!(words >> verb >> bytes >> iterations) || verb != "run" || bytes <= 0 || bytes % 4 != 0 ||
        iterations < 1 || iterations > static_cast<int>(RankGroup::kRowLength)) {
      throw UsageError("expected 'run BYTES ITERATIONS' (whole f32) or 'quit', got '" + command +
                       "'");
    }
    const Measurement::Answer result = measurement.run(bytes, iterations);
    return {{"seconds", result.seconds}, {"algorithm", result.algorithm}};
  });
}

}  // namespace syncopate::bench
