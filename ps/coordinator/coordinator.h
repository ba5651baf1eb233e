// What shard 0 does beside serving: who takes part, who trains which samples, when a cut is made
// and who writes it. A pure state machine: messages in, messages out; no sockets, no threads, no
// clock. The server's control thread drives it, or a strategy whose replicas are all in one
// process. Source of the flows: wire/PROTOCOL.md. Its parts are in coordinator/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ps/coordinator/ledger.h"
#include "ps/shard/shard.h"
#include "ps/wire/message.h"

namespace syncopate::ps {

// A task of the job. Server 0 is shard 0's own shard: it says hello like the others, and what is
// sent to it is done on the spot.
struct Party {
  enum class Role : std::uint8_t { kWorker, kServer };
  Role role = Role::kWorker;
  int index = 0;
  bool operator==(const Party&) const = default;
  bool operator<(const Party& other) const {
    return role != other.role ? role < other.role : index < other.index;
  }
};
std::string describe(const Party& party);  // "worker 2"

struct Outgoing {
  Party to;
  std::uint32_t incarnation = 0;  // of the one meant
  wire::MessageT message;
};

struct CoordinatorOptions {
  std::string nonce;  // "": any
  int servers = 1;
  std::int64_t peer_timeout_ms = 5000;
  bool writes_snapshots = false;  // servers keep files of cuts
  // Ascends with every start of shard 0 in this job: what it numbers after restore() must differ
  // from what it numbered before. 0: one more than the snapshot's, which is enough for one restart
  // per snapshot.
  int life = 0;
  // Workers that the job begins without; they are taken in when they come. Not all, and none where
  // workers keep step.
  std::vector<int> late_workers = {};
};

// One thread at a time.
class Coordinator {
 public:
  explicit Coordinator(CoordinatorOptions options);
  ~Coordinator();

  // Of somebody who says hello: Welcome is among the outgoing then, or comes later (to servers it
  // comes at once: their incarnation). Nothing when it was refused (`refusal` is what to send);
  // while the others are still meeting, one that does not fit this job ends it.
  // Whoever was this party before counts as lost.
  struct Admission {
    std::optional<Party> party;
    std::uint32_t incarnation = 0;
    wire::MessageT refusal;
  };
  Admission admit(const wire::HelloT& hello);

  // Any other message of an admitted party. One that makes no sense at this point is ignored.
  void hear(const Party& from, const wire::MessageT& message);
  // It is silent, or ended without leaving: `reason` says which. A server that is lost already: it
  // has been away for too long, and the job fails.
  void lose(const Party& party, const std::string& reason);
  // Nobody waits any longer for those of awaited(): the job fails and names them. `patience`: how
  // long and where they were waited for, "within 120 s at node3:13565".
  void end_rendezvous(const std::string& patience);
  // A push with ends_step was applied on shard 0, or dropped there.
  void trained(WorkerId worker, std::uint32_t incarnation, const wire::PushT& push);
  void dropped(WorkerId worker, std::uint32_t incarnation, const wire::PushT& push);
  // Of all pushes that shard 0's own shard has applied so far; status() says it.
  void note_staleness(double mean, std::uint64_t max);
  // The snapshot interval is over: one is taken as soon as a cut can begin, unless one is under
  // way.
  void request_snapshot();

  // What is to be sent, in this order; empties the list.
  std::vector<Outgoing> take_outgoing();

  bool has_started() const noexcept;
  // All workers have left after the last cut, or the job has failed: nothing more will come.
  bool is_over() const noexcept;
  // Why the job ended, if it failed.
  const std::optional<std::string>& failure() const noexcept;
  // It failed because variables are lost: nobody can go on from the snapshots that there are.
  bool has_lost_variables() const noexcept;
  wire::JobStatusT status() const;
  int live_workers() const noexcept;  // that have said hello, and have neither left nor been lost
  // Workers that were let in and are not ready yet, though nothing keeps them: others may wait for
  // them, to start or for a cut.
  std::vector<int> joining() const;
  // Without whom the job does not go on: "worker 1, server 2"; nothing: all it needs are there. The
  // caller's clock decides how long is too long.
  std::optional<std::string> awaited() const;

  // Everything to go on from after a restart; while a cut is made, as of that cut: batches of later
  // pushes count as untrained, and so do those whose pushes have not been heard of yet. Exact
  // therefore from the moment when shard 0's own part of the cut is copied.
  std::vector<std::byte> save() const;
  // Before anybody says hello. Of several snapshots the oldest first: it goes on from the last, and
  // can go back to the others should a server not have that one. Throws FileError for bytes that
  // save() did not write.
  void restore(std::span<const std::byte> saved);
  // So many of the newest snapshots are gone back to: servers keep files of no fewer.
  static constexpr std::size_t kKeptCuts = 3;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace syncopate::ps
