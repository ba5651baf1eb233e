// An endless sequence of batches. The order of samples depends on (seed, epoch) only and not on
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

// The trace in which the reader threads of a batch source record spans, such as the time of reading
// a batch.
struct ReaderTrace {
  Trace* trace = nullptr;  // null: spans are not recorded; outlives the source
  int first_id = 1000;     // id of the first reader, above the replicas' ids
  std::string name = "reader";
};

// What a batch source may tune while it runs (input_tuner.h), and the CPUs and the memory that it
// may use.
struct Autotune {
  bool threads = false;  // true: the number of readers is tuned; InputOptions::threads is not used
  // True: the number of batches ahead is tuned; InputOptions::prefetch is not used.
  bool prefetch = false;
  int cpus = 1;                                     // CPUs that reader threads and lanes share
  int lanes = 0;                                    // lanes (compute threads) of the consumer
  std::int64_t most_bytes = std::int64_t{1} << 30;  // memory for all batches of the source

  // Divides the CPUs and the memory of this object among `sources` batch sources. Returns the
  // options of one such source.
  Autotune share(int sources) const;
};

struct InputOptions {
  std::int64_t batch_size = 64;  // samples per step over all replicas of all tasks
  std::uint64_t seed = 1;
  bool shuffle = true;
  bool drop_remainder = true;  // false: the last batch of an epoch may be short; true in training
  // What happens to a sample that cannot be read but may be skipped. True: the sample is left out,
  // and its batch is shorter. False: the good sample with the next higher number replaces it.
  bool leaves_out_bad = false;
  Augment augment = Augment::kNone;
  int threads = 1;   // number of reader threads
  int prefetch = 2;  // batches ready ahead of the consumer
  Autotune autotune;
  InputShard shard;  // this task's share of each batch
  ReaderTrace trace;
};

// Return the values of --input-threads and --prefetch: "auto" or a number.
std::string threads_text(const InputOptions& options);
std::string prefetch_text(const InputOptions& options);

struct InputCounters {
  double wait_seconds = 0.0;  // how long the consumer waited in next()
  std::int64_t batches = 0;
  int readers = 1;       // reader threads that make batches now
  int most_readers = 0;  // the most readers that a fixed prefetch allows; 0: prefetch is tuned
};

// Makes batches from the samples of a data set, without end. One thread calls next().
class BatchSource {
 public:
  virtual ~BatchSource() = default;
  // Returns the next batch, with the inputs, the target and the keys (make_key()) of N samples, in
  // the shapes and dtypes of the data set. N is the number of samples in this task's share of the
  // global batch (InputOptions::shard). It is smaller in the short last batch of an epoch and may
  // be 0. loss_divisor is the number of samples of the global batch. The memory is reused: the
  // batch stays valid until the second call after this one. The batch is returned by reference,
  // because a copy of its shapes would cost two allocations per step. Throws what the data set
  // throws for a sample of the batch, and throws it again on every later call.
  virtual const Batch& next() = 0;
  // Returns the position of the batch that next() will return.
  virtual ps::DataPosition position() const = 0;
  // Returns the number of batches of a whole epoch. A short last batch counts if
  // InputOptions::drop_remainder is false.
  virtual std::int64_t batches_per_epoch() const = 0;
  virtual InputCounters counters() const = 0;
};

// Makes a source of batches; the data set must outlive it. Throws UsageError for an empty data set,
// for options or a position out of range, and for overlapping untrained ranges. With
// drop_remainder, throws UsageError for a global batch that is larger than the data set.
std::unique_ptr<BatchSource> make_batch_source(const Dataset& dataset, const InputOptions& options,
                                               ps::DataPosition start = {});

}  // namespace syncopate
