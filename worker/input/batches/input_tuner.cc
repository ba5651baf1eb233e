#include "worker/input/batches/input_tuner.h"

#include <algorithm>
#include <cmath>

namespace syncopate {
namespace {

constexpr int kNewest = 12;            // values that may show a change of a cost
constexpr double kStandardErrors = 6;  // least difference of these from the older ones
constexpr double kLeastChange = 0.1;   // of the mean; smaller changes need no reaction
constexpr double kPause = 5.0;         // times the mean: an evaluation or a checkpoint, not a step
constexpr int kMostPauses = 4;         // more in a row are slower steps
constexpr int kFirstSteps = 2;         // before the first choice
constexpr double kBadWait = 0.01;      // of the step: the input is too slow
constexpr double kRounding = 0.1;      // readers
// Takes in a row with too many readers before their number falls: a reader too many costs little.
constexpr int kTakesToRest = 16;
constexpr double kSlackOfRunning = 0.5;  // CPUs that running readers may use beyond their share

}  // namespace

double RecentCost::sum(int newest) const noexcept {
  double total = 0.0;
  for (int age = 0; age < newest; ++age) total += at(age);
  return total;
}

void RecentCost::add(double seconds) {
  next_ = (next_ + 1) % kMost;
  at(0) = seconds;
  size_ = std::min(size_ + 1, kMost);
  if (settling_ > 0 && --settling_ == 0) size_ = kNewest;
  const int older = size_ - kNewest;
  if (older < kNewest) return;
  const double newest_mean = sum(kNewest) / kNewest;
  const double older_mean = (sum(size_) - sum(kNewest)) / older;
  double squares = 0.0;
  for (int age = kNewest; age < size_; ++age) {
    squares += (at(age) - older_mean) * (at(age) - older_mean);
  }
  const double standard_error = std::sqrt(squares / older / kNewest);
  const double difference = std::abs(newest_mean - older_mean);
  if (difference > kStandardErrors * standard_error && difference > kLeastChange * older_mean) {
    size_ = kNewest;
    settling_ = 2 * kNewest;
  }
}

bool RecentCost::add_unless_pause(double seconds) {
  if (size_ >= kFirstSteps && seconds > kPause * mean() && ++pauses_ <= kMostPauses) return false;
  if (pauses_ > kMostPauses) size_ = 0;
  pauses_ = 0;
  add(seconds);
  return true;
}

InputTuner::InputTuner(const InputTunerOptions& options)
    : options_(options),
      readers_(options.readers),
      ahead_(options.ahead),
      spare_(std::max(1, options.ahead - options.readers)) {}

void InputTuner::limit_readers(int readers) {
  options_.most_readers = std::max(1, readers);
  readers_ = std::min(readers_, options_.most_readers);
}

void InputTuner::add_take(double step_seconds, double waited_seconds, bool were_blocked) {
  // The first step is often far slower than the others: libraries are loaded, memory is touched.
  if (takes_++ < 2) return;
  if (!step_.add_unless_pause(step_seconds)) return;
  wait_.add(waited_seconds);
  if (options_.tunes_readers) tune_readers();
  were_blocked_ = were_blocked_ || were_blocked;
  if (options_.tunes_ahead) tune_ahead(waited_seconds > 0.0);
}

int InputTuner::affordable(double slack) const {
  const double step = step_.mean();
  const double busy = step > 0.0 ? step / (step + wait_.mean()) : 1.0;
  const double free_cpus = options_.cpus - options_.lanes * busy + slack;
  const int most = options_.tunes_ahead
                       ? std::min(options_.most_readers, options_.most_ahead - 1)
                       : std::min(options_.most_readers, std::max(1, options_.ahead));
  return std::clamp(static_cast<int>(std::ceil(free_cpus)), 1, std::max(1, most));
}

void InputTuner::tune_readers() {
  if (step_.count() < kFirstSteps || batch_.count() == 0 || step_.mean() <= 0.0) return;
  const double ratio = batch_.mean() / step_.mean();
  const int enough = std::max(1, static_cast<int>(std::ceil(ratio - kRounding)));
  // One reader more is faster than the consumer even if the costs vary.
  const int wanted = std::min(enough + 1, affordable(0.0));
  if (wait_.mean() > kBadWait * step_.mean() && wanted > readers_) readers_ = wanted;
  const int most = std::min(enough + 1, affordable(kSlackOfRunning));
  lower_for_ = readers_ > most ? lower_for_ + 1 : 0;
  if (lower_for_ < kTakesToRest) return;
  readers_ = most;
  lower_for_ = 0;
}

void InputTuner::tune_ahead(bool waited) {
  if (waited && were_blocked_) {
    spare_ *= 2;
    were_blocked_ = false;
  }
  // Batches arrive in order: the more readers, the more batches wait for a slow one.
  spare_ = std::max(spare_, (readers_ + 1) / 2);
  spare_ = std::clamp(spare_, 1, std::max(1, options_.most_ahead - readers_));
  ahead_ = std::max(ahead_, std::min(readers_ + spare_, options_.most_ahead));
}

}  // namespace syncopate
