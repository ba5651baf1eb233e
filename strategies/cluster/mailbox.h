// What the training thread and the watching thread of one task hand each other, so that only the
// latter touches the sockets.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <string>
#include <vector>

#include "models/base/deadline.h"
#include "models/base/file_descriptor.h"
#include "ps/net/connection.h"

namespace syncopate {

class Mailbox {
 public:
  // Throws FileError: no descriptors are left.
  Mailbox();

  // For the training thread.
  void post(Frame frame);
  void wake() noexcept;  // the watching thread
  // The next `count` texts; fewer at the deadline or after an interruption.
  std::vector<std::string> take_texts(std::size_t count, const Deadline& deadline);
  // False at the deadline or after an interruption.
  bool wait_until_left(const Deadline& deadline);
  bool wait_until_closed(const Deadline& deadline);  // interruptions notwithstanding
  bool is_interrupted() const;

  // For the watching thread.
  int wake_descriptor() const noexcept { return wake_.get(); }  // readable after post() or wake()
  std::vector<Frame> take_posted();
  void deliver_text(std::string text);
  void set_left();    // all tasks are done
  void set_closed();  // no connection is left
  void interrupt();   // there is nothing to wait for any more

 private:
  void set(bool Mailbox::*flag);

  FileDescriptor wake_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_.
  std::vector<Frame> posted_;
  std::deque<std::string> texts_;
  bool left_ = false;
  bool closed_ = false;
  bool interrupted_ = false;
};

}  // namespace syncopate
