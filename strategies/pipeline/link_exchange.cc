#include "strategies/pipeline/link_exchange.h"

#include <fmt/format.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <utility>

#include "models/base/errors.h"
#include "models/base/shared_memory_file.h"

namespace syncopate {
namespace {

// Precedes the tensor of a micro-batch on the connection.
struct TensorHeader {
  std::uint32_t magic = 0x65706950;  // the ASCII text "Pipe"
  std::uint32_t sequence = 0;        // number of the micro-batch in the run
  std::uint64_t bytes = 0;           // of the tensor
};

}  // namespace

// The stage's thread fills tensors and counts them; the communication thread sends them in order.
class LinkExchange::Sender final : public Handover {
 public:
  Sender(LinkExchange& exchange, FileDescriptor socket, HandoverTensors tensors,
         HandoverNames names)
      : exchange_(exchange),
        socket_(std::move(socket)),
        tensors_(std::move(tensors)),
        bytes_(static_cast<std::size_t>(tensors_.micro_batches)),
        names_(std::move(names)) {}

  Tensor memory(int micro_batch, std::int64_t samples) const override {
    return tensors_.of(micro_batch).rows(0, samples);
  }
  void begin_step() override {}
  void send(int micro_batch, std::int64_t samples) override {
    bytes_[static_cast<std::size_t>(micro_batch)] = memory(micro_batch, samples).bytes().size();
    submitted_.fetch_add(1, std::memory_order_release);
    exchange_.wake();
  }
  bool receive(int /*micro_batch*/, std::int64_t /*samples*/) override {
    throw InternalError("a stage sends on this link and does not receive");
  }
  void give_up() override {}

  // The functions below run on the communication thread.
  int socket() const noexcept { return socket_.get(); }
  bool wants_to_send() const noexcept {
    return sent_ != submitted_.load(std::memory_order_acquire);
  }
  // Returns the number of bytes that it could send without blocking. Throws PeerError.
  std::size_t progress() {
    if (!wants_to_send()) return 0;
    const std::size_t bytes = bytes_[static_cast<std::size_t>(micro_batch_)];
    TensorHeader header{.sequence = sent_, .bytes = bytes};
    std::byte* const body = tensors_.of(micro_batch_).bytes().data();
    const std::size_t of_header = std::min(done_bytes_, sizeof header);
    const std::size_t of_body = done_bytes_ - of_header;
    std::array<iovec, 2> pieces = {
        iovec{reinterpret_cast<std::byte*>(&header) + of_header, sizeof header - of_header},
        iovec{body + of_body, bytes - of_body}};
    msghdr message{};
    message.msg_iov = pieces.data();
    message.msg_iovlen = pieces.size();
    const ssize_t moved = sendmsg(socket_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (moved < 0 && (errno == EAGAIN || errno == EINTR)) return 0;
    if (moved < 0) {
      throw PeerError(describe_errno(
          fmt::format("{}: send the {} of a micro-batch to", names_.self, names_.what), names_.peer,
          errno));
    }
    done_bytes_ += static_cast<std::size_t>(moved);
    if (done_bytes_ == sizeof header + bytes) {
      done_bytes_ = 0;
      ++sent_;
      micro_batch_ = (micro_batch_ + 1) % tensors_.micro_batches;
    }
    return static_cast<std::size_t>(moved);
  }

 private:
  LinkExchange& exchange_;
  const FileDescriptor socket_;
  const HandoverTensors tensors_;
  std::vector<std::size_t> bytes_;  // of each micro-batch of a step that is submitted
  const HandoverNames names_;
  std::atomic<std::uint32_t> submitted_{0};  // micro-batches of the run
  std::uint32_t sent_ = 0;
  int micro_batch_ = 0;         // the one that is sent next; number within the step
  std::size_t done_bytes_ = 0;  // of the current micro-batch, header included
};

// The communication thread receives into the tensors of a hand-over. A stage sends into the memory
// of a micro-batch again only after this stage has ended its backward pass, so the memory is free.
class LinkExchange::Receiver {
 public:
  Receiver(FileDescriptor socket, HandoverTensors tensors, const WaitRules& rules,
           HandoverNames names)
      : socket_(std::move(socket)),
        handover_(std::make_shared<CountedHandover>(std::move(tensors), arrived_, rules,
                                                    std::move(names))) {}

  const std::shared_ptr<CountedHandover>& handover() const noexcept { return handover_; }
  int socket() const noexcept { return socket_.get(); }
  void wake() const noexcept { futex_wake_all(arrived_); }

  // Returns the number of bytes that it could receive without blocking. Throws PeerError.
  std::size_t progress() {
    const std::uint32_t sequence = arrived_.load(std::memory_order_relaxed);
    const Tensor& tensor = handover_->tensors().of(micro_batch_);
    const bool in_header = done_bytes_ < sizeof header_;
    std::byte* const into = in_header ? reinterpret_cast<std::byte*>(&header_) + done_bytes_
                                      : tensor.bytes().data() + (done_bytes_ - sizeof header_);
    const std::size_t left = sizeof header_ + (in_header ? 0 : header_.bytes) - done_bytes_;
    const ssize_t moved = recv(socket_.get(), into, left, MSG_DONTWAIT);
    if (moved < 0 && (errno == EAGAIN || errno == EINTR)) return 0;
    if (moved <= 0) throw_closed(moved == 0 ? 0 : errno);
    done_bytes_ += static_cast<std::size_t>(moved);
    if (in_header && done_bytes_ == sizeof header_) check_header(sequence, tensor);
    if (done_bytes_ >= sizeof header_ && done_bytes_ == sizeof header_ + header_.bytes) {
      done_bytes_ = 0;
      micro_batch_ = (micro_batch_ + 1) % handover_->tensors().micro_batches;
      handover_->send(0, 0);  // counts the tensor and wakes the stage
    }
    return static_cast<std::size_t>(moved);
  }

 private:
  [[noreturn]] void throw_closed(int error) const {
    const HandoverNames& names = handover_->names();
    if (error == 0) throw PeerError(names.peer + " closed its connection");
    throw PeerError(describe_errno(names.self + ": receive from", names.peer, error));
  }

  void check_header(std::uint32_t sequence, const Tensor& tensor) const {
    if (header_.magic == TensorHeader().magic && header_.sequence == sequence &&
        header_.bytes <= tensor.bytes().size()) {
      return;
    }
    const HandoverNames& names = handover_->names();
    throw PeerError(fmt::format(
        "{} expected the {} of micro-batch {}, at most {} bytes, {} sent another message ({}, {} "
        "bytes); start all tasks with the same program and flags",
        names.self, names.what, sequence, tensor.bytes().size(), names.peer, header_.sequence,
        header_.bytes));
  }

  const FileDescriptor socket_;
  std::atomic<std::uint32_t> arrived_{0};  // micro-batches of the run
  const std::shared_ptr<CountedHandover> handover_;
  TensorHeader header_;
  int micro_batch_ = 0;         // the one that is received next; number within the step
  std::size_t done_bytes_ = 0;  // of the current micro-batch, header included
};

LinkExchange::LinkExchange(AbortReason& abort) : abort_(abort) {}

LinkExchange::~LinkExchange() {
  communication_.request_stop();
  wake();
}

std::shared_ptr<Handover> LinkExchange::add_sender(FileDescriptor socket, HandoverTensors tensors,
                                                   HandoverNames names) {
  senders_.push_back(
      std::make_shared<Sender>(*this, std::move(socket), std::move(tensors), std::move(names)));
  return senders_.back();
}

std::shared_ptr<Handover> LinkExchange::add_receiver(FileDescriptor socket, HandoverTensors tensors,
                                                     const WaitRules& rules, HandoverNames names) {
  receivers_.push_back(
      std::make_unique<Receiver>(std::move(socket), std::move(tensors), rules, std::move(names)));
  return receivers_.back()->handover();
}

void LinkExchange::start(Ring ring) {
  ring_ = std::move(ring);
  communication_ = std::jthread([this](const std::stop_token& stop) { communicate(stop); });
}

void LinkExchange::wake() noexcept { work_event_.notify(); }

void LinkExchange::communicate(const std::stop_token& stop) {
  pthread_setname_np(pthread_self(), "pipeline-link");
  try {
    move_bytes(stop);
  } catch (const PeerError& error) {
    abort_.set(error.what());
  }
  for (const auto& receiver : receivers_) receiver->wake();
}

void LinkExchange::move_bytes(const std::stop_token& stop) {
  int idle_attempts = 0;
  while (!stop.stop_requested() && !abort_.is_set()) {
    std::size_t moved = 0;
    for (const auto& receiver : receivers_) {
      const std::size_t received = receiver->progress();
      bytes_received_.fetch_add(static_cast<std::int64_t>(received), std::memory_order_relaxed);
      moved += received;
    }
    for (const auto& sender : senders_) {
      const std::size_t sent = sender->progress();
      bytes_sent_.fetch_add(static_cast<std::int64_t>(sent), std::memory_order_relaxed);
      moved += sent;
    }
    if (moved > 0) {
      idle_attempts = 0;
    } else if (++idle_attempts >= kIdleAttempts) {
      sleep();
      idle_attempts = 0;
    }
  }
}

// Sleeps until a socket is ready, a stage sends, or the job ends. This wait has no deadline, since
// the waits of the stages have one.
void LinkExchange::sleep() {
  std::vector<pollfd> events = {pollfd{work_event_.descriptor(), POLLIN, 0},
                                pollfd{abort_.descriptor(), POLLIN, 0}};
  for (const auto& receiver : receivers_) events.push_back({receiver->socket(), POLLIN, 0});
  for (const auto& sender : senders_) {
    if (sender->wants_to_send()) events.push_back({sender->socket(), POLLOUT, 0});
  }
  (void)poll(events.data(), events.size(), -1);
  work_event_.clear();
}

}  // namespace syncopate
