// The watching thread of a task: it owns the connections of the star, sends heartbeats, notices who
// is lost, and at rank 0 passes on what all must know.
//
// It ends in one of three ways: everybody has left, a verdict (somebody was lost or failed), or
// this task fails itself. After that nobody is watched. Rank 0 and a failing task stay until the
// others have closed their connections, which says that they have got the last message; the others
// close at once.
#pragma once

#include <poll.h>

#include <atomic>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "strategies/cluster/failure_notice.h"
#include "strategies/cluster/hub.h"
#include "strategies/cluster/mailbox.h"
#include "strategies/cluster/meeting.h"
#include "strategies/cluster/watch.h"

namespace syncopate {

// What it shares with the training thread; outlives it.
struct WatcherPorts {
  Hub* hub = nullptr;
  Mailbox* mailbox = nullptr;
  FailureNotice* notice = nullptr;
  const std::atomic<std::int64_t>* step = nullptr;
};

// One thread only.
class Watcher {
 public:
  Watcher(Meeting meeting, const WatcherPorts& ports);

  // Until asked to stop, and then up to kLinger longer for those who have not yet got the last
  // message.
  void run(const std::stop_token& stop);

 private:
  struct Peer {
    int index = 0;
    std::string name;  // "rank 2 (host b, pid 77)"
    Connection connection;
    std::int64_t step = -1;  // where it was when last heard of; -1: before the first
    bool is_open() const noexcept { return connection.descriptor() >= 0; }
    void close() { connection = Connection(); }
  };

  std::vector<pollfd> wait(const std::optional<Deadline>& linger);
  void listen_to(Peer& peer);
  void take(Peer& peer, Frame frame);
  void take_posted();
  void send_to_all(const std::vector<Frame>& frames);
  void deliver(Frame frame);
  void send_heartbeats();
  void flush();
  void lose(Peer& peer, const std::string& how);
  void note_own_absence(std::chrono::nanoseconds late);
  bool was_given_up() const;
  void conclude(const std::string& verdict);  // the first one counts
  void close_all();
  bool all_closed() const noexcept;
  bool is_hub() const noexcept { return index_ == 0; }

  const int index_;
  const std::chrono::nanoseconds peer_timeout_;
  WatcherPorts ports_;
  std::string own_name_;
  std::vector<Peer> peers_;  // those we have a connection to
  Watch watch_;              // by place in peers_
  Watch::Time next_heartbeat_;
  std::chrono::nanoseconds absence_{0};  // how long we did not run ourselves, the last time
  Watch::Time absent_until_;
  bool ended_ = false;
};

}  // namespace syncopate
