// A ScheduledWorker is a worker of a random job: it follows the protocol, one action at a time.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "ps/coordinator/ledger.h"
#include "ps/coordinator/wire_conversion.h"
#include "ps/wire/message.h"
#include "tests/ps/coordinator/schedule_server.h"

namespace syncopate::ps {

class ScheduledWorker {
 public:
  ScheduledWorker(int index, const wire::DeclarationT& declaration, const wire::InitialisedT& start,
                  std::deque<ScheduledServer>& servers)
      : index_(index), declaration_(declaration), start_(start), servers_(servers) {}

  // Starts or restarts the worker's process.
  void start();
  // Reconnects the worker to server 0, which was restarted.
  void call_again();
  void stop(int kind);
  void on_message(const wire::MessageT& message);
  // The actions that the worker can take now.
  std::vector<std::function<void()>> choices();
  // Receives a server's answer to the worker's push.
  void answered(int server, const TrainingPush& push);

  bool is_alive = false;
  bool is_training() const noexcept { return stage_ == Stage::kTraining; }
  bool has_left() const noexcept { return stage_ == Stage::kLeft; }
  const std::optional<std::string>& failure() const noexcept { return failure_; }
  std::deque<wire::MessageT> sent;             // messages in transit to server 0
  std::deque<wire::MessageT> inbox;            // received messages, not yet processed
  std::vector<wire::AssignmentT> assignments;  // all evaluations and checkpoints to make

 private:
  enum class Stage : std::uint8_t { kRegistering, kConnecting, kReady, kTraining, kLeft };

  // Workers send the fingerprint of the declaration; server 0 asks for the declaration.
  void send_hello(bool with_declaration = false);
  template <typename BodyT>
  void send(BodyT body) {
    sent.push_back(wire::make_message(std::move(body)));
  }
  void learn(const std::vector<std::unique_ptr<wire::ServerAddressT>>& addresses);
  void roll_back();
  void join(int server);
  bool has_rounds() const { return declaration_.outer != nullptr; }
  void begin_step();
  // Trains a batch, which the worker pushes at the end of its round.
  void train();
  // Returns whether the round must end: it is full, or there is no batch for its next step.
  bool ends_round() const;
  void push_to(int server);
  bool is_synchronous() const {
    return consistency_of(declaration_) == Consistency::kSync && declaration_.backup_workers == 0;
  }

  const int index_;
  const wire::DeclarationT& declaration_;
  const wire::InitialisedT& start_;
  std::deque<ScheduledServer>& servers_;

  int process_ = 0;
  std::uint64_t call_ = 0;   // number of the connection to server 0
  bool is_welcome_ = false;  // to server 0, since the last Hello
  Stage stage_ = Stage::kRegistering;
  std::uint32_t incarnation_ = 0;
  bool initialises_ = false;
  std::map<int, std::uint32_t> shards_;  // known incarnation of each server; 0: disconnected
  std::set<int> to_join_;
  std::uint64_t sequence_ = 0;
  std::uint32_t server_0_incarnation_ = 0;  // as in the last RollBack
  std::map<int, std::uint64_t> versions_;
  std::deque<SampleRange> leases_;
  int requested_ = 0;
  bool is_dismissed_ = false;
  std::int64_t steps_left_ = 0;       // used by synchronous jobs only
  std::vector<SampleRange> round_;    // trained batches that are not pushed yet
  bool knows_all_granted_ = false;    // no batch is left for now
  std::vector<SampleRange> batches_;  // of the last push
  std::set<int> to_push_;
  std::set<int> unanswered_;
  std::deque<std::uint64_t> undone_;  // snapshots that are still to be evaluated or saved
  bool has_finished_ = false;
  std::optional<std::string> failure_;
};

}  // namespace syncopate::ps
