// The buckets of a virtual job, and the times at which they travel. A worker sends the gradients of
// a bucket as soon as they are complete, and begins its next step when the values of the first
// layers have arrived; so messages overlap with computation, as in a real job. All functions are
// pure.
#pragma once

#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "bench/virtual_clock/event_queue.h"
#include "bench/virtual_clock/worker_account.h"
#include "models/graph/graph.h"
#include "ps/shard/gradient_codec.h"
#include "ps/shard/placement.h"
#include "worker/train/step_profile.h"

namespace syncopate::bench {

struct TimedBuckets {
  StepProfile profile;              // when a step uses and completes the buckets
  std::vector<std::int64_t> bytes;  // of the values of each bucket
  std::vector<int> owner{};         // the server of each bucket; empty: workers all-reduce buckets

  bool has_servers() const noexcept { return !owner.empty(); }
  BucketId count() const noexcept { return static_cast<BucketId>(bytes.size()); }
  // Returns the bucket that a step uses first, and completes last.
  BucketId first_used() const noexcept { return count() - 1; }
  int servers() const noexcept;
  std::int64_t bytes_of(BucketId bucket) const { return bytes[static_cast<std::size_t>(bucket)]; }
  int owner_of(BucketId bucket) const { return owner[static_cast<std::size_t>(bucket)]; }
  // Returns the bytes of the values on each server.
  std::vector<std::int64_t> bytes_by_server() const;
  // Returns the time from the start of a step, which computes for `compute`, until the bucket is
  // used or complete.
  VirtualTime use(BucketId bucket, VirtualTime compute) const {
    return fraction_of(compute, profile.use(bucket));
  }
  VirtualTime completion(BucketId bucket, VirtualTime compute) const {
    return fraction_of(compute, profile.completion(bucket));
  }

 private:
  static VirtualTime fraction_of(VirtualTime time, double fraction) {
    return VirtualTime(std::llround(fraction * static_cast<double>(time.count())));
  }
};

// Returns the buckets of a job with servers, which send values in this format. micro_batches: the
// number of parts that a worker divides a step into.
TimedBuckets served_buckets(const Graph& graph, const ps::Placement& placement,
                            ps::ValuesFormat format = ps::ValuesFormat::kF32,
                            int micro_batches = 1);
// Returns the buckets of a job without servers.
TimedBuckets reduced_buckets(const Graph& graph, std::int64_t bucket_bytes, int micro_batches = 1);

// Joins buckets of one server until each server has at most `most_per_server`. A joined bucket is
// used when the first of its layers is used.
TimedBuckets joined(const TimedBuckets& buckets, std::int64_t most_per_server);

// The way of one bucket of one worker, from the gradients to the values of the next step.
struct BucketTrip {
  VirtualTime sent{0};       // when the gradients had arrived at the server
  VirtualTime answered{0};   // when the server sent the values
  VirtualTime on_server{0};  // how long the gradients waited for the server and its update
  VirtualTime arrived{0};    // when the values had arrived at the worker
};

// When a step begins to compute without further waiting.
struct StepStart {
  VirtualTime at{0};
  BucketId last = 0;  // the bucket that the step waited for longest
};

// Returns when a step that began at `begun`, and computes for `compute`, would have begun if it had
// waited for all values at once: a layer waits for its values, and all later layers with it. trips:
// by bucket.
StepStart start_of_step(const TimedBuckets& buckets, std::span<const BucketTrip> trips,
                        VirtualTime begun, VirtualTime compute);

// Adds the time [from, until] to the account of a worker that waited for the values of a bucket: to
// waiting for peers, for the server's update, or for messages.
void add_wait(WorkerAccount& account, const BucketTrip& trip, VirtualTime from, VirtualTime until);

}  // namespace syncopate::bench
