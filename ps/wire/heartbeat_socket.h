// The control socket of a task, with a thread of its own for heartbeats. A task that fills or
// copies memory, builds a shard or waits for a disk goes on sending heartbeats, and goes on reading
// what its peers send, so that no peer is taken for dead because this task was busy.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "ps/net/peer_silence.h"
#include "ps/net/wake_event.h"
#include "ps/wire/zmq_socket.h"

namespace syncopate::ps::wire {

// Has the functions of Socket, for one thread besides the heartbeat thread: the owner. It calls one
// of them at least a few times per second. No heartbeats are sent once the owner has called none
// for kOwnerTimeout, until it does. So a task is lost to its peers if its control thread hangs, for
// example on a file system without a server.
//
// A mutex lets the heartbeat thread use the same ZeroMQ socket: a thread that only passed messages
// on would cost two switches of threads per lease. Source: zmq_socket(3), "Thread safety": a socket
// may be used by several threads with a full fence between them.
class HeartbeatSocket {
 public:
  // Sends a heartbeat with the value of `step` once per `interval`. `step` outlives this object.
  HeartbeatSocket(std::unique_ptr<Socket> socket, std::chrono::nanoseconds interval,
                  const std::atomic<std::int64_t>& step,
                  std::chrono::nanoseconds owner_timeout = kOwnerTimeout);
  HeartbeatSocket(const HeartbeatSocket&) = delete;
  HeartbeatSocket& operator=(const HeartbeatSocket&) = delete;
  ~HeartbeatSocket();

  bool send(Envelope message);
  void flush();
  // Returns the next message that is not a heartbeat of a watched peer. Throws what has ended the
  // heartbeat thread.
  std::optional<Received> receive();
  // An event ends the watch of the peer of a DEALER.
  std::optional<LinkEvent> link_event();
  // Returns the end of the message about a DEALER after its peer, at this endpoint, did not answer:
  // why, and what to look at. May take a second.
  std::string why_no_answer(const Endpoint& endpoint) const;
  void log_dropped(Envelope& message, const std::string& problem);
  std::int64_t callers_without_greeting() const;
  std::int64_t foreign_messages() const;
  const std::vector<int>& descriptors() const noexcept { return descriptors_; }

  // Sends heartbeats to this peer and watches it from now on (PeerSilence). `process`: the
  // process_name() of the peer. `peer`: "" for the only peer of a DEALER.
  void watch(const std::string& peer, std::chrono::nanoseconds timeout, const std::string& process);
  void forget(const std::string& peer);
  // Returns the watched peers that are lost, but only after receive() has returned all their
  // messages. A later message of such a peer withdraws the loss.
  std::map<std::string, LostPeer> lost() const;
  // Returns the step of the peer's last heartbeat.
  std::int64_t step(const std::string& peer) const;
  void set_interval(std::chrono::nanoseconds interval);

  // Longer than a task builds its shard or reads a checkpoint. Time does not count while this
  // process was stopped or had a thread without a CPU.
  static constexpr std::chrono::minutes kOwnerTimeout{10};

 private:
  struct Watched {
    PeerSilence watch;
    std::int64_t step = 0;
    bool is_connected = true;  // as of the last heartbeat to the peer
  };

  // Locks the mutex for the owner, and notes that the owner's thread runs.
  std::unique_lock<std::mutex> lock_for_owner() const;
  void run(const std::stop_token& stop);
  // The functions below require the mutex.
  void run_once(std::unique_lock<std::mutex>& lock);
  // Sleeps until another thread or a change of a connection wakes this one, without the mutex.
  void sleep(std::unique_lock<std::mutex>& lock, std::chrono::nanoseconds longest);
  bool is_owner_alive();
  void send_heartbeats();
  bool read_waiting();
  void check_peers();
  std::chrono::nanoseconds time_to_next_task(PeerSilence::Time now) const;
  // Notes that the sender is alive. Returns whether the message is for this class only.
  bool take(const Received& message);

  const std::atomic<std::int64_t>& own_step_;
  const std::unique_ptr<Socket> socket_;  // GUARDED_BY(mutex_)
  WakeEvent wake_;                        // set while received_ has messages
  const std::vector<int> descriptors_;
  const int link_descriptor_;
  WakeEvent wakes_thread_;  // wakes the heartbeat thread
  mutable std::mutex mutex_;
  // The members below are guarded by the mutex.
  std::chrono::nanoseconds interval_;
  PeerSilence::Time next_heartbeat_;
  ObserverClock observer_;  // measures the heartbeat thread
  std::map<std::string, Watched> watched_;
  std::map<std::string, LostPeer> lost_;
  std::deque<Received> received_;          // messages that the heartbeat thread has read
  mutable bool has_owner_called_ = false;  // since the heartbeat thread has looked
  PeerSilence owner_;                      // its calls count as messages
  bool is_owner_lost_ = false;
  std::exception_ptr failure_;  // of the heartbeat thread

  std::jthread thread_;  // declared last: it uses the other members
};

}  // namespace syncopate::ps::wire
