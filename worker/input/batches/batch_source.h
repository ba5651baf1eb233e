// An endless sequence of batches. Its order is a function of (seed, epoch) and independent of
// threads; the share of a task follows from its input shard. The position can be saved and
// restored.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "models/backend/model.h"
#include "models/base/trace.h"
#include "ps/coordinator/data_position.h"
#include "strategies/input_shard.h"
#include "worker/input/dataset.h"
#include "worker/input/draw.h"

namespace syncopate {

// Where the reader threads of a source record their spans.
struct ReaderTrace {
  Trace* trace = nullptr;  // null: nowhere; outlives the source
  int first_id = 1000;     // id of the first reader, above the replicas' ids
  std::string name = "reader";
};

// What a source may choose itself while it runs (input_tuner.h).
struct Autotune {
  bool threads = false;                             // InputOptions::threads is not used
  bool prefetch = false;                            // InputOptions::prefetch is not used
  int cpus = 1;                                     // CPUs for the readers and the lanes together
  int lanes = 0;                                    // compute threads of the consumer
  std::int64_t most_bytes = std::int64_t{1} << 30;  // of all batches of the source

  // Returns the budget of one of `sources` sources that share this one.
  Autotune share(int sources) const;
};

struct InputOptions {
  std::int64_t batch_size = 64;  // samples per step over all replicas of all tasks
  std::uint64_t seed = 1;
  bool shuffle = true;
  bool drop_remainder = true;  // true in training; else the last batch of an epoch is short
  // What becomes of a sample that cannot be read and may be skipped: true: it is left out, and its
  // batch is shorter; false: the next good sample by number takes its place.
  bool leaves_out_bad = false;
  Augment augment = Augment::kNone;
  int threads = 1;   // number of reader threads
  int prefetch = 2;  // batches ready ahead of the consumer
  Autotune autotune;
  InputShard shard;  // this task's share of each batch
  ReaderTrace trace;
};

// Return the values as a user gives them: "auto" or a number.
std::string threads_text(const InputOptions& options);
std::string prefetch_text(const InputOptions& options);

struct InputCounters {
  double wait_seconds = 0.0;  // how long the consumer waited in next()
  std::int64_t batches = 0;
  int readers = 1;       // reader threads that make batches now
  int most_readers = 0;  // those that a fixed prefetch allows; 0: prefetch is tuned
};

// A source of batches. One thread calls next().
class BatchSource {
 public:
  virtual ~BatchSource() = default;
  // Returns the next batch: inputs and target with the shapes and dtypes of the data set, N samples
  // each, and their keys (make_key); loss_divisor is the global sample count of this step. N is the
  // share of this shard, which is smaller in the short last batch of an epoch and may be 0. The
  // batch is recycled: it stays valid until the second next call. Returned by reference, because a
  // copy of its shapes would cost two allocations per step. Throws what the data set throws for a
  // sample of the batch, and throws it again on every later call.
  virtual const Batch& next() = 0;
  // Returns the position of the batch that next() will return.
  virtual ps::DataPosition position() const = 0;
  // Returns the number of batches of a whole epoch, including a short last batch if that is used.
  virtual std::int64_t batches_per_epoch() const = 0;
  virtual InputCounters counters() const = 0;
};

// Makes a source of batches; the data set must outlive it. Throws UsageError for an empty data set,
// a global batch larger than the data set with drop_remainder, options or a position out of range,
// and overlapping untrained ranges.
std::unique_ptr<BatchSource> make_batch_source(const Dataset& dataset, const InputOptions& options,
                                               ps::DataPosition start = {});

}  // namespace syncopate
