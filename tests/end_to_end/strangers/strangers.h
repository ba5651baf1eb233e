// Strangers are connections to every port of a job's processes that send what careless or hostile
// programs send: noise, half greetings, huge lengths, endless messages, forged and repeated
// messages, one byte at a time, or nothing.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <semaphore>
#include <set>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "models/base/file_descriptor.h"
#include "ps/wire/message.h"

namespace syncopate::test {

struct StrangerOptions {
  int idle_connections = 1000;  // to each port
  std::size_t servers = 0;      // ports of ZeroMQ that await_first_round() waits for
};

class Strangers {
 public:
  // Disturbs `processes` and the processes that they have started until the destructor or stop() is
  // called.
  Strangers(std::vector<pid_t> processes, const StrangerOptions& options);
  Strangers(const Strangers&) = delete;
  Strangers& operator=(const Strangers&) = delete;
  ~Strangers();
  void stop();
  // Waits until each kind of disturbance has taken place at a port, and at so many ports of servers
  // as the options say. Returns false if they do not open.
  bool await_first_round() { return first_round_.try_acquire_for(std::chrono::seconds(60)); }

  // The results, to be read after stop().
  const std::map<std::string, std::int64_t>& attempts() const { return attempts_; }  // by kind
  const std::set<std::uint16_t>& ports() const { return ports_; }
  // What a stranger was told and should not have been: values, or the nonce of the job.
  const std::vector<std::string>& leaks() const { return leaks_; }
  std::int64_t peak_memory_bytes() const { return peak_memory_bytes_; }  // of any process
  // The most bytes of an endless message that were taken before its connection was closed.
  std::int64_t longest_message_bytes() const { return longest_message_bytes_; }

 private:
  struct Slow {
    FileDescriptor socket;
    std::size_t sent = 0;
  };

  void run(const std::stop_token& stop);
  // Looks for processes and ports that are new, and at the memory of the processes.
  void look();
  // Sends the bytes, and keeps the connection open for a while.
  void send_and_keep(FileDescriptor socket, const std::string& kind, std::string_view bytes);
  void send_once(std::uint16_t port, const std::string& kind, std::string_view bytes);
  static FileDescriptor call_with_handshake(std::uint16_t port, std::string_view routing_id);
  // Sends bytes behind a greeting and handshake of ZeroMQ with this routing id.
  void send_greeted(std::uint16_t port, const std::string& kind, std::string_view routing_id,
                    std::string_view bytes);
  void send_noise(std::uint16_t port);
  void send_endlessly(std::uint16_t port);
  void send_forged(std::uint16_t port);
  void look_for_leak(const ps::wire::MessageT& answer);
  void open_idle(std::uint16_t port);
  void continue_slow();

  const std::vector<pid_t> processes_;
  const StrangerOptions options_;
  std::map<std::string, std::int64_t> attempts_;
  std::set<std::uint16_t> ports_;
  std::set<std::uint16_t> open_ports_;
  std::set<std::uint16_t> server_ports_;  // ports that have received forged messages
  std::set<std::string> nonces_;
  std::vector<std::string> leaks_;
  std::int64_t peak_memory_bytes_ = 0;
  std::int64_t longest_message_bytes_ = 0;
  std::deque<FileDescriptor> kept_;
  std::map<std::uint16_t, std::vector<FileDescriptor>> idle_;
  std::vector<Slow> slow_;
  std::uint64_t random_ = 1;
  bool had_round_ = false;
  std::binary_semaphore first_round_{0};
  std::jthread thread_;
};

}  // namespace syncopate::test
