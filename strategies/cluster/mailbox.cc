#include "strategies/cluster/mailbox.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <utility>

#include "models/base/errors.h"

namespace syncopate {

Mailbox::Mailbox() : wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!wake_) throw FileError(describe_errno("create", "an eventfd", errno));
}

void Mailbox::post(Frame frame) {
  {
    const std::lock_guard lock(mutex_);
    posted_.push_back(std::move(frame));
  }
  wake();
}

void Mailbox::wake() noexcept { eventfd_write(wake_.get(), 1); }

std::vector<std::string> Mailbox::take_texts(std::size_t count, const Deadline& deadline) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, deadline.remaining(),
                    [&] { return texts_.size() >= count || interrupted_; });
  std::vector<std::string> texts;
  while (!texts_.empty() && texts.size() < count) {
    texts.push_back(std::move(texts_.front()));
    texts_.pop_front();
  }
  return texts;
}

bool Mailbox::wait_until_left(const Deadline& deadline) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, deadline.remaining(), [&] { return left_ || interrupted_; });
  return left_;
}

bool Mailbox::wait_until_closed(const Deadline& deadline) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, deadline.remaining(), [&] { return closed_; });
}

bool Mailbox::is_interrupted() const {
  const std::lock_guard lock(mutex_);
  return interrupted_;
}

std::vector<Frame> Mailbox::take_posted() {
  eventfd_t wakes = 0;
  eventfd_read(wake_.get(), &wakes);
  const std::lock_guard lock(mutex_);
  return std::exchange(posted_, {});
}

void Mailbox::deliver_text(std::string text) {
  {
    const std::lock_guard lock(mutex_);
    texts_.push_back(std::move(text));
  }
  changed_.notify_all();
}

void Mailbox::set(bool Mailbox::*flag) {
  {
    const std::lock_guard lock(mutex_);
    this->*flag = true;
  }
  changed_.notify_all();
}

void Mailbox::set_left() { set(&Mailbox::left_); }

void Mailbox::set_closed() { set(&Mailbox::closed_); }

void Mailbox::interrupt() { set(&Mailbox::interrupted_); }

}  // namespace syncopate
