// The control socket of a task, with a separate thread for heartbeats. While the task fills or
// copies memory, builds a shard or waits for a disk, the thread still sends heartbeats and still
// reads messages of the peers. So the peers do not take this busy task for dead, and this task does
// not take its peers for dead.
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

// A Socket that also sends heartbeats. One thread, the owner, calls its functions, at least one of
// them a few times per second. If the owner calls no function for kOwnerTimeout, no heartbeats are
// sent until the next call. So the peers notice if a task's control thread hangs, for example in a
// network file system without a server.
//
// The owner and the heartbeat thread use the same ZeroMQ socket under a mutex. If only the
// heartbeat thread used the socket and passed messages on, each lease would cost two thread
// switches. Source: zmq_socket(3), "Thread safety": a socket may be used by several threads with a
// full fence between them.
class HeartbeatSocket {
 public:
  // Starts the heartbeat thread, which sends every watched peer a heartbeat with the value of
  // `step` once per `interval`. `step` must outlive this object.
  HeartbeatSocket(std::unique_ptr<Socket> socket, std::chrono::nanoseconds interval,
                  const std::atomic<std::int64_t>& step,
                  std::chrono::nanoseconds owner_timeout = kOwnerTimeout);
  HeartbeatSocket(const HeartbeatSocket&) = delete;
  HeartbeatSocket& operator=(const HeartbeatSocket&) = delete;
  ~HeartbeatSocket();

  bool send(Envelope message);
  void flush();
  // Returns the next message that is not a heartbeat of a watched peer, if there is one. Throws the
  // exception that ended the heartbeat thread, if it has ended.
  std::optional<Received> receive();
  // Returns the next event of the connection. On a DEALER, every event ends the watch of the
  // DEALER's peer.
  std::optional<LinkEvent> link_event();
  // For a DEALER that got no answer from its peer at this endpoint: returns the end of the error
  // message, which has the reason and what the user should check. May take a second.
  std::string why_no_answer(const Endpoint& endpoint) const;
  void log_dropped(Envelope& message, const std::string& problem);
  std::int64_t callers_without_greeting() const;
  std::int64_t foreign_messages() const;
  const std::vector<int>& descriptors() const noexcept { return descriptors_; }

  // Sends heartbeats to this peer and watches it from now on (PeerSilence). `peer` is the peer's
  // routing id, "" for the only peer of a DEALER. `process` is the process_name() of the peer.
  void watch(const std::string& peer, std::chrono::nanoseconds timeout, const std::string& process);
  void forget(const std::string& peer);
  // Returns the watched peers that are lost, by routing id. A lost peer is included once receive()
  // has returned all messages of the peer. If a later message of the peer arrives, the peer is not
  // included any more.
  std::map<std::string, LostPeer> lost() const;
  // Returns the step of the peer's last heartbeat.
  std::int64_t step(const std::string& peer) const;
  void set_interval(std::chrono::nanoseconds interval);

  // How long the owner may call no function before heartbeats stop: longer than a task needs to
  // build its shard or to read a checkpoint. Time is not counted while this process is stopped, or
  // while a thread of this process waits for a CPU.
  static constexpr std::chrono::minutes kOwnerTimeout{10};

 private:
  struct Watched {
    PeerSilence watch;
    std::int64_t step = 0;
    bool is_connected = true;  // whether the last heartbeat could be sent to the peer
  };

  // Locks the mutex for the owner, and records that the owner has called.
  std::unique_lock<std::mutex> lock_for_owner() const;
  void run(const std::stop_token& stop);
  // The functions below require the mutex.
  void run_once(std::unique_lock<std::mutex>& lock);
  // Unlocks the mutex and sleeps, at most `longest`, until another thread or a change of a
  // connection wakes the heartbeat thread.
  void sleep(std::unique_lock<std::mutex>& lock, std::chrono::nanoseconds longest);
  bool is_owner_alive();
  void send_heartbeats();
  bool read_waiting();
  void check_peers();
  std::chrono::nanoseconds time_to_next_task(PeerSilence::Time now) const;
  // Records that the sender is alive. Returns whether the message is for this class only, such as a
  // heartbeat.
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
  ObserverClock observer_;  // measures delays of the heartbeat thread
  std::map<std::string, Watched> watched_;
  std::map<std::string, LostPeer> lost_;
  std::deque<Received> received_;  // messages that the heartbeat thread has read
  // Whether the owner has called a function since the heartbeat thread last checked.
  mutable bool has_owner_called_ = false;
  PeerSilence owner_;  // watches the owner; the owner's calls count as messages
  bool is_owner_lost_ = false;
  std::exception_ptr failure_;  // the exception that ended the heartbeat thread

  std::jthread thread_;  // declared last: it uses the other members
};

}  // namespace syncopate::ps::wire
