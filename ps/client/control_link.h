// A worker's control connection to shard 0: meeting, heartbeats, leases, appointments, and the end.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/base/deadline.h"
#include "ps/client/client_board.h"
#include "ps/coordinator/absence.h"
#include "ps/wire/socket.h"

namespace syncopate::ps {

// The I/O thread only.
class ControlLink {
 public:
  ControlLink(wire::Context& context, ClientBoard& board, const ClientOptions& options);

  // Sent once shard 0 has welcomed us.
  void tell(wire::MessageT message);
  // What concerns the other links as well, in the order in which it is to be dealt with.
  struct News {
    std::optional<std::uint64_t> rolled_back;  // to this cut
    std::optional<std::vector<wire::ServerAddressT>> addresses;
    std::optional<wire::AppointmentT> appointment;
    std::optional<RunPosition> start;
    bool is_welcome_again = false;  // what was told last may not have arrived
  };
  // Receives and sends what can be.
  News run();
  void tick(std::int64_t step, std::uint64_t sequence);
  // We did not run for so long: what was not heard meanwhile is nobody's fault.
  void forgive(std::chrono::nanoseconds slept);
  void append_descriptors(std::vector<int>& descriptors) const;

  std::uint32_t incarnation() const noexcept { return incarnation_; }
  // As in the last RollBack; 0: none was heard.
  std::uint32_t back_as() const noexcept { return back_as_; }

 private:
  std::string name() const;
  void greet();
  void hear(const wire::MessageT& message);

  ClientBoard& board_;
  const ClientOptions& options_;
  std::unique_ptr<wire::Socket> socket_;
  std::vector<wire::MessageT> untold_;
  News news_;
  std::uint32_t incarnation_ = 0;
  std::uint32_t back_as_ = 0;
  std::uint64_t last_push_ = 0;
  bool is_connected_ = false;
  bool is_welcome_ = false;  // on this connection
  std::chrono::milliseconds peer_timeout_;
  Deadline meet_by_;
  Deadline give_up_by_;  // also when shard 0 is there
  Deadline next_heartbeat_;
  Deadline silent_until_;  // shard 0 is heard of before this
  Absence absence_;
};

}  // namespace syncopate::ps
