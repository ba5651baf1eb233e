#include "bench/input/pipeline.h"

#include "bench/harness/measure.h"

namespace syncopate::bench {

double take_batches(BatchSource& source, double seconds) {
  std::int64_t samples = 0;
  double passed = 0.0;
  source.next();
  const auto start = SteadyClock::now();
  while (passed < seconds) {
    samples += source.next().num_samples;
    passed = seconds_since(start);
  }
  return static_cast<double>(samples) / passed;
}

}  // namespace syncopate::bench
