// The hand-overs of a stage in a job with one task per stage. They use shared memory or TCP, as
// --transport says; the default is shared memory if all tasks run on one host.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "strategies/collective/collectives.h"
#include "strategies/collective/work_progress.h"
#include "strategies/pipeline/handover.h"
#include "strategies/pipeline/link_exchange.h"
#include "strategies/pipeline/stages.h"

namespace syncopate {

// Connects this task to its neighbours. One thread only, except for abort().
class TaskLinks {
 public:
  // `options` are the options of the job's collective; their membership must not be null and must
  // outlive the object. `stages` are the stages of the whole network; task s computes stage s.
  TaskLinks(const CollectiveOptions& options, std::span<const Stage> stages, int micro_batches);

  // Returns the hand-overs of this task; the TaskLinks must outlive them. Every task must call it
  // once. `samples` is the largest number of samples in a micro-batch. Throws PeerError. Throws
  // UsageError if --transport shm is impossible.
  StageLinks connect(std::int64_t samples);

  // Ends every wait of this task with PeerError. Any thread may call it.
  void abort(std::string_view reason) noexcept { abort_.set(reason); }
  // Returns whether the hand-overs go over TCP.
  bool uses_tcp() const noexcept { return exchange_ != nullptr; }
  std::int64_t bytes_sent() const noexcept { return exchange_ ? exchange_->bytes_sent() : 0; }
  std::int64_t bytes_received() const noexcept {
    return exchange_ ? exchange_->bytes_received() : 0;
  }

 private:
  bool connect_by_memory(std::int64_t samples, StageLinks& links);
  void connect_by_tcp(std::int64_t samples, StageLinks& links);
  Shape shape_behind(int stage, std::int64_t samples) const;
  int in_flight_behind(int stage) const;  // number of micro-batches in flight behind this stage
  HandoverNames names(int peer, const char* what) const;
  WaitRules rules() const;

  const CollectiveOptions options_;
  // Shape of one sample of a stage's output, for each stage but the last.
  std::vector<Shape> outputs_;
  const int micro_batches_;
  const int index_;  // number of this task and of its stage
  AbortReason abort_;
  std::unique_ptr<LinkExchange> exchange_;  // null with shared memory
};

}  // namespace syncopate
