// Where a worker's shared memory is handed out: a listening Unix-domain socket, and those who have
// called it. Each is given the descriptor once it has said the job's nonce.
#pragma once

#include <chrono>
#include <cstdint>
#include <stop_token>
#include <string>
#include <vector>

#include "models/base/file_descriptor.h"
#include "ps/net/connection.h"

namespace syncopate::ps {

// The type of the one frame that a caller sends; its payload is the nonce.
inline constexpr std::uint16_t kSegmentRequest = 0x5350;

// One thread only, until it serves.
class SegmentDesk {
 public:
  // memory: what is handed out, borrowed. patience: for each caller, from its call.
  // Throws FileError.
  SegmentDesk(FileDescriptor listening, int memory, std::string nonce,
              std::chrono::nanoseconds patience);

  // Until it is asked to stop. However many call and say nothing, who has something to say is
  // heard.
  void serve(const std::stop_token& stop);

 private:
  struct Caller {
    Connection connection;
    Deadline patience;
  };

  void wait();
  void accept();
  void hear();
  bool answer(Caller& caller) const;  // false: it has said nothing yet
  bool is_full() const noexcept;

  Listener listener_;
  int memory_;
  std::string nonce_;
  std::chrono::nanoseconds patience_;
  FileDescriptor stop_;          // readable once it is to stop
  std::vector<Caller> callers_;  // the longest silent first
  bool lacks_descriptors_ = false;
  bool has_said_so_ = false;
};

}  // namespace syncopate::ps
