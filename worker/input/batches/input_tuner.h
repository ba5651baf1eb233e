// Chooses how many reader threads make batches and how many batches are prepared ahead, from the
// times of both sides (--input-threads auto, --prefetch auto). Called by the ring of batches;
// neither has threads nor reads a clock, so that tests bring their own. Results do not depend on
// the choice.
// Sources: the rule for stages of tf.data (tensorflow/core/framework/model.cc, stage-based
// autotuning): raise a stage's parallelism until it is faster than the consumer; and its rule for
// prefetching (core/kernels/data/prefetch_autotuner.cc): double a buffer that ran empty after it
// was full.
#pragma once

#include <array>
#include <cstddef>

namespace syncopate {

struct InputTunerOptions {
  bool tunes_readers = false;  // else `readers` stays
  bool tunes_ahead = false;    // else `ahead` stays
  int readers = 1;             // to begin with
  int ahead = 2;               // batches prepared ahead of the consumer, to begin with
  int most_readers = 1;
  int most_ahead = 2;  // what the memory budget allows
  int cpus = 1;        // CPUs that the readers and the consumer share
  int lanes = 0;       // threads of the consumer, which sleep while it waits for a batch

  bool is_on() const noexcept { return tunes_readers || tunes_ahead; }
};

// The mean of the recent values of a cost, in seconds.
class RecentCost {
 public:
  // Adds a value. When the last few values are far from the older ones, the cost has changed, and
  // the older ones are dropped.
  void add(double seconds);
  // As add(), but leaves out values that are far above the mean, unless several come in a row.
  // Returns whether the value was added.
  bool add_unless_pause(double seconds);

  int count() const noexcept { return size_; }
  double mean() const noexcept { return size_ > 0 ? sum(size_) / size_ : 0.0; }

 private:
  static constexpr int kMost = 128;

  double sum(int newest) const noexcept;
  double& at(int age) noexcept { return values_[index(age)]; }
  double at(int age) const noexcept { return values_[index(age)]; }
  std::size_t index(int age) const noexcept {
    return static_cast<std::size_t>(next_ - 1 - age + 2 * kMost) % kMost;
  }

  std::array<double, kMost> values_{};
  int next_ = 0;
  int size_ = 0;
  int settling_ = 0;  // values to come until those measured during a change are dropped
  int pauses_ = 0;    // values in a row that were left out
};

// One thread at a time.
class InputTuner {
 public:
  explicit InputTuner(const InputTunerOptions& options);

  // Called when a reader has made a batch in `seconds` of its time.
  void add_batch(double seconds) { batch_.add(seconds); }
  // Called when the consumer has taken a batch: it asked `step_seconds` after its last batch had
  // arrived, and waited `waited_seconds`. were_blocked: readers have found no free slot since the
  // last call.
  void add_take(double step_seconds, double waited_seconds, bool were_blocked);
  // Called when no more than `readers` threads could be started.
  void limit_readers(int readers);

  int readers() const noexcept { return readers_; }
  int ahead() const noexcept { return ahead_; }
  int cpus() const noexcept { return options_.cpus; }

 private:
  void tune_readers();
  void tune_ahead(bool waited);
  // The number of readers that may run: the CPUs that the lanes leave plus `slack`, rounded up.
  int affordable(double slack) const;

  InputTunerOptions options_;
  RecentCost batch_;  // of one reader
  RecentCost step_;   // of the consumer, without waiting
  RecentCost wait_;   // of the consumer
  int takes_ = 0;
  int lower_for_ = 0;  // takes in a row with more readers than needed
  int readers_;
  int ahead_;
  int spare_;                  // batches ahead beside one of each reader
  bool were_blocked_ = false;  // readers, since `spare_` last grew
};

}  // namespace syncopate
