// Chooses how many reader threads make batches and how many batches are prepared ahead
// (--input-threads auto, --prefetch auto), from the times of the readers and of the consumer.
// Called by BatchRing. The tuner has no threads and reads no clock, so that tests can pass any
// times. Results of training do not depend on the choice.
// Sources: two rules of tf.data. Stage-based autotuning (tensorflow/core/framework/model.cc) raises
// the parallelism of a stage until it is faster than the consumer. Prefetching
// (core/kernels/data/prefetch_autotuner.cc) doubles a buffer that ran empty after it was full.
#pragma once

#include <array>
#include <cstddef>

namespace syncopate {

struct InputTunerOptions {
  bool tunes_readers = false;  // false: the number of readers does not change
  bool tunes_ahead = false;    // false: the number of batches ahead does not change
  int readers = 1;             // initial number of reader threads
  int ahead = 2;               // initial number of batches that are prepared ahead of the consumer
  int most_readers = 1;
  int most_ahead = 2;  // largest `ahead` that the memory budget allows
  int cpus = 1;        // CPUs that the readers and the consumer share
  // The number of compute threads of the consumer. These threads sleep while the consumer waits for
  // a batch.
  int lanes = 0;

  bool is_on() const noexcept { return tunes_readers || tunes_ahead; }
};

// The mean of the recent values of a cost, in seconds.
class RecentCost {
 public:
  // Adds a value. If the last few values are far from the older values, the cost has changed, and
  // the older values are dropped.
  void add(double seconds);
  // Like add(), but leaves out a value that is far above the mean. After several such values in a
  // row, adds the next such value and drops the older values. Returns whether the value was added.
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
  // A counter that starts when a change of the cost was detected, and falls by 1 with each new
  // value. When it reaches 0, the older values are dropped once more, because some of them were
  // measured during the change. 0 if no change was detected lately.
  int settling_ = 0;
  int pauses_ = 0;  // number of consecutive values that were left out
};

// Measures the time that reading and training take per batch, and chooses the number of readers and
// of batches that are prepared ahead. Not thread-safe; the ring calls it under a lock.
class InputTuner {
 public:
  explicit InputTuner(const InputTunerOptions& options);

  // Adds the time that a reader took to make a batch. Called when the batch is made.
  void add_batch(double seconds) { batch_.add(seconds); }
  // Adds the times of a step of the consumer, and chooses readers() and ahead() again. Called when
  // the consumer has taken a batch. step_seconds: the time between the arrival of the previous
  // batch and the request for this batch. waited_seconds: how long the consumer waited for this
  // batch. were_blocked: whether a reader has found no free slot since the last call.
  void add_take(double step_seconds, double waited_seconds, bool were_blocked);
  // Limits the number of readers to `readers`. Called when the system refused to start more
  // threads.
  void limit_readers(int readers);

  int readers() const noexcept { return readers_; }
  int ahead() const noexcept { return ahead_; }
  int cpus() const noexcept { return options_.cpus; }

 private:
  void tune_readers();
  void tune_ahead(bool waited);
  // Returns the number of readers that may run: the number of CPUs that the consumer's compute
  // threads (lanes) leave free, plus `slack`, rounded up. The result is at least 1 and at most
  // most_readers. The number of batches that may be prepared ahead limits it, too, because a reader
  // prepares one batch at a time.
  int affordable(double slack) const;

  InputTunerOptions options_;
  RecentCost batch_;  // seconds that one reader takes for a batch
  RecentCost step_;   // seconds of a step of the consumer, without waiting
  RecentCost wait_;   // seconds that the consumer waits for a batch
  int takes_ = 0;
  int lower_for_ = 0;  // number of consecutive takes with more readers than needed
  int readers_;
  int ahead_;
  int spare_;                  // batches ahead in addition to one per reader
  bool were_blocked_ = false;  // whether readers were blocked since spare_ was last raised
};

}  // namespace syncopate
