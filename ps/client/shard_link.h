// A worker's data connection to one shard: greeting, credit, what is under way, and sending again
// what has no answer when the connection broke or the shard was started anew.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "models/base/deadline.h"
#include "ps/client/client_board.h"
#include "ps/client/request_queue.h"
#include "ps/coordinator/absence.h"
#include "ps/wire/socket.h"

namespace syncopate::ps {

// The I/O thread only.
class ShardLink {
 public:
  ShardLink(wire::Context& context, ClientBoard& board, const ClientOptions& options, int shard);

  // Where the shard is now, or that it is away (incarnation 0); our own incarnation.
  void follow(const wire::ServerAddressT& address, std::uint32_t worker_incarnation);
  void ask(ShardRequest request);
  // Everything asked for belongs to the past, as do pushes up to `sequence`; the shard is met anew
  // when follow() says where.
  void drop_all(std::uint64_t sequence);
  // Copies of other cuts will not be answered.
  void drop_copies_but(std::uint64_t cut);
  bool is_met() const noexcept { return is_met_; }
  // Receives and sends what can be received and sent.
  void run();
  // What has waited too long: probes, and at last the failure of the job.
  void tick();
  // We did not run for a while: what was not heard meanwhile is nobody's fault.
  void forgive(std::chrono::nanoseconds slept);
  void append_descriptors(std::vector<int>& descriptors) const;

 private:
  std::string name() const;  // "server 1 at 10.0.0.7:4000"
  void greet();
  void send_what_fits();
  void send_request(ShardRequest& request);
  void send_pulls(const std::vector<const ShardRequest*>& requests);
  void hear(const wire::Envelope& envelope);
  void welcome(const wire::DataWelcomeT& welcome);
  void probe_answer(const wire::ProbeAnswerT& answer);
  void take_values(const wire::ValuesT& header, const wire::Envelope& envelope);
  void take_answer(ShardRequest::Kind kind, int bucket, const wire::Envelope& envelope);
  void lose_connection();
  void call();
  void expect_answer();

  wire::Context& context_;
  ClientBoard& board_;
  const ClientOptions& options_;
  const int shard_;
  wire::ServerAddressT address_;
  std::uint32_t worker_incarnation_ = 0;
  std::map<int, std::uint64_t> behind_;  // by bucket of the shard: the last push with an answer
  std::unique_ptr<wire::Socket> socket_;
  bool is_met_ = false;   // greeted and welcomed on this connection
  bool was_met_ = false;  // ever
  bool uses_segment_ = false;
  std::uint32_t shard_incarnation_ = 0;
  RequestQueue requests_;
  std::optional<Deadline> greet_again_;
  std::uint64_t call_ = 0;  // sockets opened so far
  // It is asked what it answers at once, whatever it is doing, and has said nothing since.
  std::optional<Deadline> answers_until_;
  std::chrono::milliseconds answer_patience_;  // longer with each call that brought nothing
  Absence absence_;
};

}  // namespace syncopate::ps
