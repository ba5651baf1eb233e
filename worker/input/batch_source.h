// Batches without end. The order is a function of (seed, epoch), whatever the number of threads;
// the share is a function of the input shard; the position can be saved and restored.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "models/backend/model.h"
#include "ps/coordinator/data_position.h"
#include "strategies/input_shard.h"
#include "worker/input/dataset.h"

namespace syncopate {

enum class Augment : std::uint8_t { kNone, kCropFlip };

struct InputOptions {
  std::int64_t batch_size = 64;  // samples of a step, over all replicas of all tasks
  std::uint64_t seed = 1;
  bool shuffle = true;
  bool drop_remainder = true;  // training; else an epoch's last batch is short
  Augment augment = Augment::kNone;
  int threads = 1;   // that read and augment
  int prefetch = 2;  // batches ready ahead of the consumer
  InputShard shard;  // which of them this task takes
};

struct InputCounters {
  double wait_seconds = 0.0;  // the consumer stood waiting in next()
  std::int64_t batches = 0;
};

// next() from one thread only.
class BatchSource {
 public:
  virtual ~BatchSource() = default;
  // x [N, H, W, C] u8, as the dataset's samples; label [N]; loss_divisor is the global count of
  // this step (all shards). N is this shard's share of batch_size, less in an epoch's short last
  // batch, where it may be 0. Batch and tensors are recycled: they stay as they are until the next
  // call but one. By reference, because copying a Batch copies its shapes: two allocations a step.
  // Throws what the dataset throws, at the batch it belongs to, and the same on every later call.
  virtual const Batch& next() = 0;
  // Of the batch that next() will return.
  virtual ps::DataPosition position() const = 0;
  // Of a whole epoch, short last batch included where it is handed out.
  virtual std::int64_t batches_per_epoch() const = 0;
  virtual InputCounters counters() const = 0;
};

// The dataset must outlive the source. Throws UsageError when the dataset is empty, when
// drop_remainder would drop everything (the global batch is larger than the dataset), for options
// or a position out of range, and for a position whose untrained ranges overlap.
std::unique_ptr<BatchSource> make_batch_source(const Dataset& dataset, const InputOptions& options,
                                               ps::DataPosition start = {});

}  // namespace syncopate
