// The hand-overs of a stage that is a task of its own: through shared memory if all tasks run on
// one host, else over TCP, as --transport says.
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
  // options: of the job's collective, with a membership, which outlives the object. Task s computes
  // stage s. stages: of the whole network.
  TaskLinks(const CollectiveOptions& options, std::span<const Stage> stages, int micro_batches);

  // Returns this task's hand-overs; every task calls it, once. samples: the most of a micro-batch.
  // The object must outlive them. Throws PeerError; UsageError when --transport shm is impossible.
  StageLinks connect(std::int64_t samples);

  // Ends every wait of this task: it throws PeerError. From any thread.
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
  int in_flight_behind(int stage) const;  // micro-batches
  HandoverNames names(int peer, const char* what) const;
  WaitRules rules() const;

  const CollectiveOptions options_;
  std::vector<Shape> outputs_;  // of a sample, by stage but the last
  const int micro_batches_;
  const int index_;  // of this task and its stage
  AbortReason abort_;
  std::unique_ptr<LinkExchange> exchange_;  // over TCP
};

}  // namespace syncopate
