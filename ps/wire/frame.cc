#include "ps/wire/frame.h"

#include <atomic>
#include <cstring>
#include <new>
#include <utility>

#include "ps/wire/frame_content.h"

namespace syncopate::ps::wire {
namespace {

struct Loan {
  std::function<void()> release;
  // ZeroMQ hands frames from thread to thread in a way that ThreadSanitizer does not see: this it
  // sees.
  std::atomic<bool> is_written = false;
};

void end_loan(void* /*bytes*/, void* hint) {
  const std::unique_ptr<Loan> loan(static_cast<Loan*>(hint));
  if (loan->is_written.load(std::memory_order_acquire) && loan->release) loan->release();
}

}  // namespace

Frame::Frame() : content_(std::make_unique<Content>()) {}
Frame::Frame(Frame&& other) noexcept = default;
Frame& Frame::operator=(Frame&& other) noexcept = default;
Frame::~Frame() = default;

Frame Frame::copy_of(std::span<const std::byte> bytes) {
  Frame frame;
  if (zmq_msg_init_size(&frame.content_->message, bytes.size()) != 0) throw std::bad_alloc();
  if (!bytes.empty()) {
    std::memcpy(zmq_msg_data(&frame.content_->message), bytes.data(), bytes.size());
  }
  return frame;
}

Frame Frame::borrow(std::span<const std::byte> bytes, std::function<void()> release) {
  Frame frame;
  auto loan = std::make_unique<Loan>();
  loan->release = std::move(release);
  loan->is_written.store(true, std::memory_order_release);
  // ZeroMQ takes the bytes as mutable and does not write them.
  auto* data = const_cast<std::byte*>(bytes.data());
  if (zmq_msg_init_data(&frame.content_->message, data, bytes.size(), end_loan, loan.get()) != 0) {
    zmq_msg_init(&frame.content_->message);
    throw std::bad_alloc();
  }
  (void)loan.release();  // end_loan() has it
  return frame;
}

std::span<const std::byte> Frame::bytes() const noexcept {
  if (!content_) return {};
  zmq_msg_t* message = &content_->message;
  return {static_cast<const std::byte*>(zmq_msg_data(message)), zmq_msg_size(message)};
}

Envelope envelope(std::string peer, const MessageT& message) {
  Envelope made{std::move(peer), {}};
  made.frames.push_back(Frame::copy_of(encode(message)));
  return made;
}

}  // namespace syncopate::ps::wire
