// Sums over steps: since some line of metrics, since an epoch began.
#pragma once

#include <cstdint>
#include <limits>

#include "models/backend/model.h"

namespace syncopate {

struct Tally {
  double loss = 0.0;  // of the steps' mean losses
  double seconds = 0.0;
  std::int64_t steps = 0;
  std::int64_t correct = 0;
  std::int64_t samples = 0;

  void add(const Scores& scores, double step_seconds) {
    loss += scores.loss;
    seconds += step_seconds;
    ++steps;
    correct += scores.num_correct;
    samples += scores.num_samples;
  }
  // NaN of nothing.
  double mean_loss() const {
    return steps > 0 ? loss / static_cast<double>(steps) : std::numeric_limits<double>::quiet_NaN();
  }
  double accuracy() const {
    return ratio(static_cast<double>(correct), static_cast<double>(samples));
  }
  double samples_per_second() const { return ratio(static_cast<double>(samples), seconds); }

  // 0 of nothing.
  static double ratio(double part, double whole) { return whole > 0.0 ? part / whole : 0.0; }
};

}  // namespace syncopate
