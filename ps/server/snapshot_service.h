// A shard's snapshots in memory, with their running statistics: the snapshot that the shard is
// copying, and the snapshot that workers read. Part of DataService. SnapshotWriter writes snapshots
// to files.
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

// Makes a shard's snapshots and sends them to workers that read them. Used by the data thread only.
class SnapshotService {
 public:
  explicit SnapshotService(WorkerSessions& sessions) : sessions_(sessions) {}

  RunningStatistics& statistics() noexcept { return statistics_; }

  // Makes the shard copy its values into `snapshot`. Abandons an earlier snapshot that is not
  // complete. Returns the snapshot if the shard has no buckets, because the snapshot is then
  // complete; otherwise null.
  std::shared_ptr<ServedSnapshot> begin(std::shared_ptr<ServedSnapshot> snapshot,
                                        const ServedVariables& served);
  // Counts a bucket that was copied into this snapshot. Returns the snapshot if all buckets have
  // been copied, otherwise null.
  std::shared_ptr<ServedSnapshot> on_bucket_copied(std::uint64_t snapshot);
  void abandon() { copying_.reset(); }
  // Sets the only snapshot that workers can read from now on; if `snapshot` is null, workers can
  // read none.
  void publish(std::shared_ptr<const ServedSnapshot> snapshot) { published_ = std::move(snapshot); }

  // Returns the answer to ReadSnapshot, a worker's request for a part of the published snapshot or
  // of the current values. Returns nullopt if there is no such snapshot or bucket.
  std::optional<wire::Envelope> read(WorkerSession& session, const wire::ReadSnapshotT& header,
                                     const ServedVariables& served);

 private:
  WorkerSessions& sessions_;
  RunningStatistics statistics_{{}};
  std::shared_ptr<ServedSnapshot> copying_;
  int buckets_left_ = 0;  // number of buckets that are still to be copied
  std::shared_ptr<const ServedSnapshot> published_;
};

}  // namespace syncopate::ps
