// Hands micro-batches over to tasks on other machines, over the connections of the TCP ring. A
// communication thread moves the bytes, so that a stage can compute while its output is being sent,
// and two neighbours that send to each other do not block.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "models/base/file_descriptor.h"
#include "ps/net/wake_event.h"
#include "strategies/collective/ring_links.h"
#include "strategies/collective/work_progress.h"
#include "strategies/pipeline/counted_handover.h"

namespace syncopate {

class LinkExchange {
 public:
  // `abort` must outlive the object. The exchange sets `abort` when a connection fails. The
  // exchange's thread ends when any thread has set `abort`. Throws FileError if no descriptor is
  // left.
  explicit LinkExchange(AbortReason& abort);
  LinkExchange(const LinkExchange&) = delete;
  LinkExchange& operator=(const LinkExchange&) = delete;
  ~LinkExchange();

  // add_sender() returns a hand-over that sends `tensors` over the socket. add_receiver() returns a
  // hand-over that receives `tensors` from the socket. The exchange must outlive the hand-overs.
  // Both functions must be called before start().
  std::shared_ptr<Handover> add_sender(FileDescriptor socket, HandoverTensors tensors,
                                       HandoverNames names);
  std::shared_ptr<Handover> add_receiver(FileDescriptor socket, HandoverTensors tensors,
                                         const WaitRules& rules, HandoverNames names);
  // Starts the communication thread. Keeps the connections that remain in `ring` open until the
  // object is destroyed.
  void start(Ring ring);

  void wake() noexcept;  // any thread may call it
  std::int64_t bytes_sent() const noexcept { return bytes_sent_.load(std::memory_order_relaxed); }
  std::int64_t bytes_received() const noexcept {
    return bytes_received_.load(std::memory_order_relaxed);
  }

 private:
  class Sender;
  class Receiver;

  void communicate(const std::stop_token& stop);
  void move_bytes(const std::stop_token& stop);
  void sleep();

  AbortReason& abort_;
  WakeEvent work_event_;
  std::vector<std::shared_ptr<Sender>> senders_;
  std::vector<std::unique_ptr<Receiver>> receivers_;
  Ring ring_;
  std::atomic<std::int64_t> bytes_sent_{0};
  std::atomic<std::int64_t> bytes_received_{0};
  std::jthread communication_;  // last, since the thread uses all members above
};

}  // namespace syncopate
