// The I/O thread of a task's membership. It owns the connections of the star (membership.h), sends
// heartbeats and detects lost tasks. On rank 0 it forwards what all tasks must know.
//
// The membership ends in one of three ways: every task has left, there is a verdict that a task was
// lost or has failed, or this task itself fails. After that no peer is observed. Rank 0, or a task
// that fails, waits until the peers have closed their connections, which shows that they have
// received the last message. The other tasks close their connections at once.
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

// Collects on rank 0 the messages that every task sends, including rank 0: the texts of exchange()
// and the calls of leave(). It has no sockets. Thread-safe.
class Aggregator {
 public:
  explicit Aggregator(int world_size)
      : texts_(static_cast<std::size_t>(world_size)),
        leaving_(static_cast<std::size_t>(world_size)) {}

  // Takes a kText or kLeaving frame of task `from`. Returns the frames that rank 0 must now send to
  // all tasks.
  std::vector<Frame> on_message(int from, Frame frame);

  // without_text() returns the indices of the tasks that have not sent the next text, not_leaving()
  // the indices of the tasks that have not sent kLeaving.
  std::vector<int> without_text() const;
  std::vector<int> not_leaving() const;

 private:
  mutable std::mutex mutex_;
  // The collected messages by task index, guarded by mutex_. There is a queue per task because a
  // fast task may be one exchange ahead.
  std::vector<std::deque<std::string>> texts_;
  std::vector<bool> leaving_;
};

// The messages between the training thread and the I/O thread of one task. Only the I/O thread
// uses the sockets. Thread-safe.
class MembershipQueue {
 public:
  // The training thread calls the functions from here to is_interrupted().
  void post(Frame frame) { posted_.post(std::move(frame)); }
  void wake() noexcept { posted_.wake(); }  // wakes the I/O thread
  // Waits until `count` texts of an exchange() have arrived and returns them. Returns fewer texts
  // if the deadline has passed or interrupt() was called.
  std::vector<std::string> take_texts(std::size_t count, const Deadline& deadline);
  // Waits until every task has left. Returns false if the deadline has passed or interrupt() was
  // called.
  bool wait_until_left(const Deadline& deadline);
  // Waits until all connections are closed; interrupt() does not end this wait. Returns false if
  // the deadline has passed.
  bool wait_until_closed(const Deadline& deadline);
  bool is_interrupted() const;

  // The I/O thread calls the functions from here to interrupt().
  int wake_descriptor() const noexcept { return posted_.descriptor(); }
  std::vector<Frame> take_posted() { return posted_.take(); }
  void deliver_text(std::string text);
  void set_left();    // every task has left
  void set_closed();  // no connection is left
  void interrupt();   // ends waits, because the job has ended

 private:
  void set(bool MembershipQueue::*flag);

  Mailbox<Frame> posted_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  // The members below are guarded by mutex_.
  std::deque<std::string> texts_;
  bool left_ = false;
  bool closed_ = false;
  bool interrupted_ = false;
};

// The state that the I/O thread shares with the training thread. It must outlive the I/O thread.
struct MembershipState {
  Aggregator* aggregator = nullptr;
  MembershipQueue* queue = nullptr;
  FailureNotice* notice = nullptr;
  const std::atomic<std::int64_t>* step = nullptr;
  std::atomic<std::int64_t>* lowest_step = nullptr;  // of all tasks
};

// The work of the I/O thread: sockets, heartbeats and the verdict. One thread only.
class MembershipThread {
 public:
  MembershipThread(ConnectedTask task, const MembershipState& state);

  // Runs until a stop is requested. If the membership has ended by then, run() waits up to kLinger
  // for the peers to receive the last message.
  void run(const std::stop_token& stop);

 private:
  struct Peer {
    int index = 0;
    std::string name;  // the peer's name in messages, such as "rank 2 (host b, pid 77)"
    Connection connection;
    PeerSilence watch;
    std::int64_t step = -1;  // the step in the peer's last heartbeat; -1 before its first step
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
  void set_verdict(const std::string& verdict);  // does nothing if there is a verdict
  void close_all();
  bool all_closed() const noexcept;
  bool is_rank_zero() const noexcept { return index_ == 0; }

  const int index_;
  const std::chrono::nanoseconds peer_timeout_;
  MembershipState state_;
  std::string own_name_;
  std::vector<Peer> peers_;  // on rank 0 all other tasks, on other ranks only rank 0
  ObserverClock observer_;   // measures delays of this thread
  PeerSilence::Time next_heartbeat_;
  std::chrono::nanoseconds own_delay_{0};  // the longest recent delay of this thread
  PeerSilence::Time delayed_until_;
  bool ended_ = false;
};

}  // namespace syncopate
