// A worker's side of the parameter servers: meets them, pulls and pushes without waiting, hears
// what shard 0 asks of it. An I/O thread owns the sockets; everybody else may call from any thread.
// Source of the flows: wire/PROTOCOL.md.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/tensor/tensor.h"
#include "ps/client/roll_back.h"
#include "ps/coordinator/data_position.h"
#include "ps/coordinator/stop_kind.h"
#include "ps/net/endpoint.h"
#include "ps/shard/gradient_codec.h"
#include "ps/wire/message.h"

namespace syncopate::ps {

struct ClientOptions {
  int index = 0;
  int workers = 1;
  int servers = 1;
  Endpoint rendezvous;  // shard 0's control socket
  std::string nonce;
  wire::DeclarationT declaration;
  CompressionOptions compression;
  // The worker's memory, [arena total] f32 each, laid out as the declaration says. Outlive the
  // client.
  std::span<float> values;
  std::span<const float> gradients;
  // Under which the same memory is handed to shards of this machine (ps/net/segment.h); "": it is
  // not.
  std::string segment;
  bool requires_segment = false;  // --transport shm
  std::chrono::milliseconds rendezvous_timeout = std::chrono::seconds(120);
  std::chrono::milliseconds peer_timeout = std::chrono::seconds(5);  // unless server 0 says another
  bool insists_on_peer_timeout = false;                              // then another is a UsageError
  // How long a shard may be gone, because somebody starts it again.
  std::chrono::milliseconds server_patience = std::chrono::seconds(5);
  // How long a connection that is up may bring nothing though the shard was asked what it answers
  // at once; then it is called anew. Doubles, ten times at most, while calls bring nothing new.
  std::chrono::milliseconds answer_patience = std::chrono::seconds(6);
  // Whether this task is; a server that is gone is then not waited for as long. Called by a thread
  // of the client's; empty: nobody asks.
  std::function<bool()> asked_to_stop;
};

// What goes with the pushes of one step.
struct StepInfo {
  float learning_rate = 0.0F;
  SampleRange batch;  // empty where nobody leases
  int lanes = 1;
  double loss = 0.0;
  std::int64_t correct = 0;
  std::int64_t samples = 0;
  StopCounts stops;
  std::span<const float> state;  // running statistics; empty: none travel
};

// Whatever waits throws PeerError when the job has failed or a shard stays away, and RolledBack
// when all shards went back to an earlier step, until go_on().
class Client {
 public:
  // Meets everybody; returns when every shard has answered. Throws PeerError, and UsageError for
  // what shard 0 refuses and for a host that nobody knows.
  explicit Client(const ClientOptions& options);
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  ~Client();  // without leave(): the others take it for a failure

  // This worker writes the first values.
  bool initialises() const;
  std::uint32_t incarnation() const;

  // The initialising worker, before initialised(): this bucket's part of the arena-sized blocks.
  // Versions start so that the next update is number `step` + 1.
  void write_variables(std::span<const float> values, std::span<const std::span<const float>> slots,
                       std::int64_t step);
  void write_state(std::span<const float> state);
  void initialised(const RunPosition& start);
  // The others: we are ready. Both: returns when training begins.
  RunPosition wait_start();

  // After RolledBack, once nobody uses anything of before: values come without pull().
  void go_on();

  // Asks for all values, but for those that are on their way as answers to pushes.
  void pull();
  // Returns when the bucket's values are those that the last pull or push asked for.
  void wait_values(int bucket);
  // The pushes that follow are of one step.
  void begin_step(const StepInfo& info);
  // The gradient of the bucket is complete, and stays as it is until wait_values(bucket) returns.
  void push(int bucket);
  // Of the step: everybody's sums under sync, of those that were waited for with backup workers;
  // else this worker's own.
  wire::StepSumsT finish_step();
  // Returns when every push has been answered.
  void flush();

  // One at a time, from one thread.
  std::optional<SampleRange> next_lease();
  wire::JobStatusT status() const;
  std::optional<wire::AppointmentT> appointment();
  // Nothing: the job is over.
  std::optional<wire::AppointmentT> wait_appointment();
  // A copy that a cut made, into arena-sized blocks; slots may be empty. Throws CutWithdrawn.
  void read_cut(std::uint64_t cut, std::span<float> values,
                std::span<const std::span<float>> slots);
  std::vector<float> read_cut_state(std::uint64_t cut);
  void done(std::uint64_t cut);
  void request_stop(StopKind kind);

  // Everybody's text, by worker; all call it in the same order.
  std::vector<std::string> exchange(std::string_view mine);

  void report_step(std::int64_t step) noexcept;  // others name it should we die
  // All is done; returns when shard 0 knows. Throws RolledBack when it is not.
  void leave();
  // We end because of `reason`.
  void fail(std::string_view reason) noexcept;
  // Wakes everybody who waits in here; they throw PeerError with this reason.
  void abort(std::string_view reason) noexcept;

  // Of pushes and pulls, for figures: bytes each way, for how long answers were held back for other
  // workers, and how many shards share our memory.
  struct Traffic {
    std::int64_t bytes_pushed = 0;
    std::int64_t bytes_pulled = 0;
    double peers_wait_seconds = 0.0;
    int shards_in_segment = 0;
  };
  Traffic traffic() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace syncopate::ps
