// The one server of a job whose workers are replicas of this process: a shard in their memory, and
// what the coordinator has it do, without sockets, files and threads. Its counterpart in a process
// of its own is ps/server/server_duties.h.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "ps/server/served_variables.h"
#include "ps/shard/running_statistics.h"
#include "ps/shard/shard.h"
#include "ps/wire/message.h"

namespace syncopate {

// One thread at a time, but for the shard. Nobody waits in here.
class LocalServer {
 public:
  // Makes the shard, values zero. Throws UsageError for a declaration that makes no sense.
  explicit LocalServer(ps::wire::DeclarationT declaration);

  ps::Shard& shard() const noexcept { return *served_->shard; }
  const ps::wire::DeclarationT& declaration() const noexcept { return served_->declaration; }

  // Before anybody trains: the shard's tensors hold the first values, and these are the running
  // statistics. Updates count on from `step`.
  void begin(std::int64_t step, std::vector<float> statistics);

  // Of a worker of the same incarnation.
  void join(ps::WorkerId worker, std::uint32_t incarnation, std::uint64_t sequence);

  ps::wire::HelloT hello() const;
  void obey(const ps::wire::MessageT& message);
  // What is to be said to the coordinator since the last call.
  std::vector<ps::wire::MessageT> take_replies();
  // Whether work may have become due on any bucket since the last call.
  bool take_due() noexcept;

  // A push that ends a step was applied.
  void trained(ps::WorkerId worker, std::uint64_t sequence, std::int64_t samples,
               std::vector<float> statistics);
  // One more bucket's part of the cut is copied.
  void copied();
  // What the last cut made; null: none, or it is not whole, or released.
  std::shared_ptr<const ps::CutCopy> copy() const noexcept { return published_; }

 private:
  void freeze(std::uint64_t cut);
  void begin_cut(const ps::wire::CutT& cut);
  void end_cut();
  void reply(ps::wire::MessageT message);

  const std::shared_ptr<ps::ServedVariables> served_;
  std::optional<ps::RunningStatistics> statistics_;
  std::vector<ps::wire::MessageT> replies_;
  std::shared_ptr<ps::CutCopy> cut_;  // under way
  std::size_t buckets_to_copy_ = 0;
  std::shared_ptr<const ps::CutCopy> published_;
  bool is_due_ = false;
};

}  // namespace syncopate
