// A shard's snapshots in memory, and the running statistics that belong to them: the snapshot that
// the shard is copying, and the copies that workers read. Part of DataService; files are written by
// SnapshotWriter.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "ps/server/served_variables.h"
#include "ps/server/worker_sessions.h"
#include "ps/shard/running_statistics.h"
#include "ps/wire/zmq_socket.h"

namespace syncopate::ps {

// A SnapshotService is used by the data thread only.
class SnapshotService {
 public:
  explicit SnapshotService(WorkerSessions& sessions) : sessions_(sessions) {}

  RunningStatistics& statistics() noexcept { return statistics_; }

  // Makes the shard copy its values into `snapshot`; an earlier snapshot that is not complete is
  // abandoned. Returns the snapshot if it is complete at once, because the shard has no buckets.
  std::shared_ptr<ServedSnapshot> begin(std::shared_ptr<ServedSnapshot> snapshot,
                                        const ServedVariables& served);
  // Called when a bucket was copied into this snapshot. Returns the snapshot if it is complete.
  std::shared_ptr<ServedSnapshot> on_bucket_copied(std::uint64_t snapshot);
  void abandon() { copying_.reset(); }
  // Lets workers read this snapshot from now on; null: none.
  void publish(std::shared_ptr<const ServedSnapshot> snapshot) { published_ = std::move(snapshot); }

  // Returns the answer to ReadSnapshot, a worker's request for a part of the published snapshot or
  // of the live values. Nothing if there is no such snapshot or bucket.
  std::optional<wire::Envelope> read(WorkerSession& session, const wire::ReadSnapshotT& header,
                                     const ServedVariables& served);

 private:
  WorkerSessions& sessions_;
  RunningStatistics statistics_{{}};
  std::shared_ptr<ServedSnapshot> copying_;
  int buckets_left_ = 0;  // to be copied into the snapshot
  std::shared_ptr<const ServedSnapshot> published_;
};

}  // namespace syncopate::ps
