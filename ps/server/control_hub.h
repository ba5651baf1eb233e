// The control side of server 0: the socket at which everybody meets, heartbeats, and the
// coordinator that decides.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "models/base/deadline.h"
#include "ps/coordinator/coordinator.h"
#include "ps/server/data_service.h"
#include "ps/server/server.h"
#include "ps/server/server_duties.h"
#include "ps/wire/zmq_socket.h"

namespace syncopate::ps {

// One thread only.
class ControlHub {
 public:
  ControlHub(ServerOptions& options, DataService& data, ServerDuties& duties,
             std::function<void(const std::string&)> note);

  // Returns when the job is over. Throws PeerError when it has failed.
  void run(const std::function<bool()>& stop);

 private:
  struct Link {
    std::string peer;  // its routing id
    std::uint32_t incarnation = 0;
    Deadline heard_by;  // it is silent after this
    bool is_silent = false;
    std::optional<Deadline> ready_by;  // of a worker that joins
    std::string host;
    std::int64_t pid = 0;
    std::int64_t step = 0;
  };

  void serve(const std::function<bool()>& stop);
  void round();
  void hear(const wire::Envelope& envelope);
  void admit(const std::string& peer, const wire::HelloT& hello);
  void replace(const std::string& peer, const std::string& name, const wire::HelloT& newcomer);
  // Until nobody has anything to say any more.
  void settle();
  void send(const Outgoing& outgoing);
  void watch_time();
  // Tells the coordinator of those who are silent, or take too long to join.
  void watch_links();
  void say_farewell();
  wire::MessageT last_word() const;
  void hear_farewell(const wire::Envelope& envelope);
  void forgive();
  std::string describe_link(const Party& party, const Link& link) const;

  ServerOptions& options_;
  DataService& data_;
  ServerDuties& duties_;
  const std::function<void(const std::string&)> note_;
  wire::Context context_;
  std::unique_ptr<wire::Socket> socket_;
  Coordinator coordinator_;
  bool is_restarted_ = false;  // the job began before this process
  std::map<Party, Link> links_;
  std::map<std::string, Party> parties_;  // by routing id
  // Workers that fell silent, by routing id: stopped ones read what is said when they go on.
  std::set<std::string> silent_workers_;
  // By routing id, of those who have to hear that the job is over.
  std::map<std::string, wire::MessageT> last_words_;
  Deadline meet_by_;
  Deadline next_heartbeat_;
  std::optional<Deadline> next_snapshot_;
  std::optional<Deadline> patience_ends_;  // set while somebody has to come back
};

}  // namespace syncopate::ps
