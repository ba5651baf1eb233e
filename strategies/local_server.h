// The server of a job that runs in one process (local_job.h). It holds the job's only shard and
// carries out the coordinator's messages, without sockets, files or threads.
// ps/server/server_duties.h does the same for a server process.
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

// The server of a LocalJob. Used by one thread at a time, except the shard, which is thread-safe.
// No function blocks.
class LocalServer {
 public:
  // Makes the shard with all values zero. Throws UsageError for a contradictory declaration.
  explicit LocalServer(ps::wire::DeclarationT declaration);

  ps::Shard& shard() const noexcept { return *served_->shard; }
  const ps::wire::DeclarationT& declaration() const noexcept { return served_->declaration; }

  // Sets the versions of the shard. Called before training begins, when the shard's tensors hold
  // the initial values. `statistics` are the initial running statistics. `step` is the number of
  // updates that led to these values.
  void begin(const ps::RunPosition& start, std::vector<float> statistics);

  // Admits a worker to the shard. `sequence` is the number of the worker's last push.
  void join(ps::WorkerId worker, std::uint32_t incarnation, std::uint64_t sequence);

  ps::wire::HelloT hello() const;
  // Carries out a message that the coordinator sent to the server.
  void on_message(const ps::wire::MessageT& message);
  // Returns the messages for the coordinator since the last call.
  std::vector<ps::wire::MessageT> take_replies();
  // Returns whether messages since the last call may have made work due on any bucket of the shard,
  // such as an update that had to wait. The caller then does this work.
  bool take_due() noexcept;

  // Records that the last push of a step was applied. `statistics` are the worker's running
  // statistics.
  void trained(ps::WorkerId worker, std::uint64_t sequence, std::int64_t samples,
               std::vector<float> statistics);
  // Records that one more bucket has been copied to the snapshot in progress.
  void copied();
  // Returns the last snapshot; null before it is complete and after the coordinator has released
  // it.
  std::shared_ptr<const ps::ServedSnapshot> copy() const noexcept { return published_; }

 private:
  void freeze(std::uint64_t snapshot);
  void begin_snapshot(const ps::wire::SnapshotT& request);
  void end_snapshot();
  void reply(ps::wire::MessageT message);

  const std::shared_ptr<ps::ServedVariables> served_;
  std::optional<ps::RunningStatistics> statistics_;
  std::vector<ps::wire::MessageT> replies_;
  std::shared_ptr<ps::ServedSnapshot> snapshot_;  // the snapshot in progress
  std::size_t buckets_to_copy_ = 0;
  std::shared_ptr<const ps::ServedSnapshot> published_;
  bool is_due_ = false;
};

}  // namespace syncopate
