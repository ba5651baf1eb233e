// The all-reduce of tasks that share no memory: a ring of TCP connections. One thread per rank
// moves and adds the bytes (tcp_ring_stream.h); what is small and blocking goes through connections
// of its own in the caller's thread (tcp_ring_messages.h).
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>

#include "strategies/collective/collective.h"
#include "strategies/collective/end_reason.h"
#include "strategies/collective/tcp_ring_links.h"
#include "strategies/collective/tcp_ring_messages.h"
#include "strategies/collective/tcp_ring_stream.h"
#include "strategies/collective/work_progress.h"

namespace syncopate {

class TcpRing final : public Collective {
 public:
  struct Options {
    int rank = 0;
    int size = 1;
    std::int64_t block_elements = 0;
    std::chrono::nanoseconds patience{};
    // A membership knows better than a closed connection why a rank is gone, and is waited for.
    bool has_membership = false;
    std::shared_ptr<LinkForwarder> forwarder;  // of the task, kept as long as the links
  };
  // `links` are of no use, and no thread is started, when there is one rank.
  TcpRing(const Options& options, RingLinks links);
  TcpRing(const TcpRing&) = delete;
  TcpRing& operator=(const TcpRing&) = delete;
  ~TcpRing() override;

  int rank() const noexcept override { return options_.rank; }
  int size() const noexcept override { return options_.size; }
  const Tensor& block() const noexcept override { return block_; }
  WorkId all_reduce(const Tensor& tensor, std::int64_t index) override;
  void wait(WorkId work) override;
  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override;
  void broadcast(std::span<std::byte> bytes, int root) override;
  void abort(std::string_view reason) noexcept override;
  CommunicationTimes times() const noexcept override;

 private:
  using Clock = WorkProgress::Clock;

  // The communication thread.
  void communicate(const std::stop_token& stop);
  void move_bytes(const std::stop_token& stop);
  void sleep(std::uint64_t submitted);
  void count_ended(std::uint64_t submitted);
  void wake_communication() noexcept;

  // The caller's thread.
  [[noreturn]] void throw_reason();
  [[noreturn]] void give_up(const std::string& reason, bool others_may_know);
  [[noreturn]] void give_up(const LateRank& late);
  void wait_until_ended(WorkId work);
  template <typename Operation>
  void run_small(const Operation& operation);

  const Options options_;
  Tensor block_;
  EndReason end_;
  FileDescriptor work_event_;
  RingStream::Operations operations_;
  RingStream stream_;      // the communication thread's
  RingMessages messages_;  // the caller's
  double exposed_seconds_ = 0.0;
  std::uint64_t next_work_ = 0;

  std::atomic<std::uint64_t> submitted_{0};
  WorkProgress progress_;
  std::atomic<bool> communication_sleeps_{false};
  std::mutex mutex_;
  std::string link_reason_;  // guarded by mutex_

  std::jthread communication_;  // last: it uses all of the above
};

}  // namespace syncopate
