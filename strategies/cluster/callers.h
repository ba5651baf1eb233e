// Those who have called a listening socket and not yet said who they are. Anybody may call: however
// many do and say nothing, whoever has something to say is heard, and nobody ends us.
#pragma once

#include <poll.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "ps/net/connection.h"

namespace syncopate {

// One thread only.
class Callers {
 public:
  struct Heard {
    Connection connection;
    Frame frame;  // the first one
  };

  // Who speaks something else, or sends more than `longest_message` bytes, is turned away with a
  // warning. Who says nothing for as long as `patience` loses its place when others need it.
  Callers(Listener listener, std::uint32_t longest_message,
          std::chrono::milliseconds patience = std::chrono::seconds(5));

  std::uint16_t port() const { return listener_.port(); }

  // What poll(2) is to watch, and for how many milliseconds at most.
  void add_to(std::vector<pollfd>& sockets) const;
  int poll_milliseconds(const Deadline& deadline) const;

  // Whose first message has come since the last call. Never waits.
  std::vector<Heard> hear();

 private:
  struct Silent {
    Connection connection;
    Deadline patience;
  };

  void accept();
  void make_room();
  bool is_full() const noexcept;

  Listener listener_;
  std::uint32_t longest_message_;
  std::chrono::milliseconds patience_;
  std::vector<Silent> silent_;  // the longest silent first
  bool lacks_descriptors_ = false;
  bool has_said_so_ = false;
};

// The warning that `peer` is not of this job; `why` may begin with its name already.
void warn_turned_away(const std::string& peer, const std::string& why);

}  // namespace syncopate
