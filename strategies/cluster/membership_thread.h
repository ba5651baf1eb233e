// The I/O thread of a task's membership. It owns the connections of the star, sends heartbeats,
// detects lost tasks, and on rank 0 passes on what all tasks must know.
//
// It ends in one of three ways: every task has left; a verdict, which says that a task was lost or
// failed; or this task fails itself. After that no peer is observed. Rank 0 and a failing task wait
// until the peers have closed their connections, which means that they received the last message.
// The other tasks close theirs at once.
#pragma once

#include <poll.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "models/base/deadline.h"
#include "ps/net/mailbox.h"
#include "ps/net/peer_silence.h"
#include "strategies/cluster/failure_notice.h"
#include "strategies/cluster/rendezvous.h"

namespace syncopate {

// Rank 0's aggregation of the messages that every task sends, rank 0 included: the texts of
// exchange() and the calls of leave(). It uses no sockets. Thread-safe.
class Aggregator {
 public:
  explicit Aggregator(int world_size)
      : texts_(static_cast<std::size_t>(world_size)),
        leaving_(static_cast<std::size_t>(world_size)) {}

  // Takes a kText or kLeaving frame of a task. Returns the frames that rank 0 must now send to all
  // tasks.
  std::vector<Frame> on_message(int from, Frame frame);

  // Return the indices of the tasks that have not sent their text, or kLeaving.
  std::vector<int> without_text() const;
  std::vector<int> not_leaving() const;

 private:
  mutable std::mutex mutex_;
  // The collected messages by task index, guarded by mutex_. A fast task may be one exchange ahead.
  std::vector<std::deque<std::string>> texts_;
  std::vector<bool> leaving_;
};

// The messages between the training thread and the I/O thread of one task. Only the I/O thread
// uses the sockets. Thread-safe.
class MembershipQueue {
 public:
  // The functions from here to is_interrupted() are called by the training thread.
  void post(Frame frame) { posted_.post(std::move(frame)); }
  void wake() noexcept { posted_.wake(); }  // wakes the I/O thread
  // Waits for `count` texts of exchange(). Returns fewer at the deadline or after interrupt().
  std::vector<std::string> take_texts(std::size_t count, const Deadline& deadline);
  // Waits until every task has left. Returns false at the deadline or after interrupt().
  bool wait_until_left(const Deadline& deadline);
  // Waits for all connections to close, also after interrupt(). Returns false at the deadline.
  bool wait_until_closed(const Deadline& deadline);
  bool is_interrupted() const;

  // The functions from here to interrupt() are called by the I/O thread.
  int wake_descriptor() const noexcept { return posted_.descriptor(); }
  std::vector<Frame> take_posted() { return posted_.take(); }
  void deliver_text(std::string text);
  void set_left();    // every task has left
  void set_closed();  // no connection is left
  void interrupt();   // the job has ended, and waits end too

 private:
  void set(bool MembershipQueue::*flag);

  Mailbox<Frame> posted_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  // The queue and flags that both threads share, guarded by mutex_.
  std::deque<std::string> texts_;
  bool left_ = false;
  bool closed_ = false;
  bool interrupted_ = false;
};

// The state that the I/O thread shares with the training thread. It outlives the I/O thread.
struct MembershipState {
  Aggregator* aggregator = nullptr;
  MembershipQueue* queue = nullptr;
  FailureNotice* notice = nullptr;
  const std::atomic<std::int64_t>* step = nullptr;
};

// The work of the I/O thread: sockets, heartbeats and the verdict. One thread only.
class MembershipThread {
 public:
  MembershipThread(ConnectedTask task, const MembershipState& state);

  // Runs until a stop is requested. If the job has ended, it then waits up to kLinger for the peers
  // that have not yet received the last message.
  void run(const std::stop_token& stop);

 private:
  struct Peer {
    int index = 0;
    std::string name;  // the peer's name in messages, "rank 2 (host b, pid 77)"
    Connection connection;
    PeerSilence watch;
    std::int64_t step = -1;  // the step in the peer's last heartbeat; -1: before its first step
    bool is_open() const noexcept { return connection.descriptor() >= 0; }
    void close() { connection = Connection(); }
  };

  std::vector<pollfd> wait(const std::optional<Deadline>& linger);
  void receive_from(Peer& peer);
  void on_message(Peer& peer, Frame frame);
  void send_posted();
  void send_to_all(const std::vector<Frame>& frames);
  void deliver(Frame frame);
  void check_peers();
  void send_heartbeats();
  void flush();
  void on_lost(Peer& peer, const std::string& how);
  void record_own_delay(std::chrono::nanoseconds delay);
  bool was_given_up() const;
  void set_verdict(const std::string& verdict);  // only the first verdict counts
  void close_all();
  bool all_closed() const noexcept;
  bool is_rank_zero() const noexcept { return index_ == 0; }

  const int index_;
  const std::chrono::nanoseconds peer_timeout_;
  MembershipState state_;
  std::string own_name_;
  std::vector<Peer> peers_;  // on rank 0: all other tasks; elsewhere: only rank 0
  ObserverClock observer_;   // measures how long this thread is kept from running
  PeerSilence::Time next_heartbeat_;
  std::chrono::nanoseconds own_delay_{0};  // the longest recent delay of this thread
  PeerSilence::Time delayed_until_;
  bool ended_ = false;
};

}  // namespace syncopate
