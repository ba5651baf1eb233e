// A job's tasks as a test plays them: what they say to the coordinator, and what it tells each.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ps/coordinator/coordinator.h"

namespace syncopate::ps {

Party worker(int index);
Party server(int index);

// Two epochs of 12 samples in batches of 2: 12 steps; async, two workers, without checkpoints.
wire::DeclarationT make_declaration();
wire::DeclarationT make_declaration(Consistency consistency);
// As our own types, which can be compared.
std::vector<SampleRange> ranges_of(const wire::LeasesT& leases);
std::vector<WorkerClock> entries_of(const wire::CutT& cut);
wire::PushT make_push(std::uint64_t sequence, const SampleRange& batch);

class JobCase {
 public:
  explicit JobCase(wire::DeclarationT declares = make_declaration(), int num_servers = 1,
                   bool writes_snapshots = false);

  wire::HelloT worker_hello(int index) const;
  wire::HelloT server_hello(int index) const;
  // Nothing when it was let in, else the line.
  std::string say_hello(const wire::HelloT& hello);
  template <typename BodyT>
  void say(const Party& party, BodyT body) {
    coordinator->hear(party, wire::make_message(std::move(body)));
    collect();
  }
  void lose(const Party& party, const std::string& reason = "is silent");
  void trained(int index, std::uint64_t sequence, const SampleRange& batch);
  void trained(int index, std::uint32_t incarnation, const wire::PushT& push);
  // As whoever has heard the last RollBack.
  void be_ready(int index, std::uint64_t sequence = 0);
  void dropped(int index, std::uint64_t sequence, const SampleRange& batch);

  // The first such message that this task has been told and the test has not taken.
  template <typename BodyT>
  std::optional<BodyT> take(const Party& party) {
    std::deque<wire::MessageT>& messages = told[party];
    for (auto message = messages.begin(); message != messages.end(); ++message) {
      if (message->body.type != wire::BodyUnionTraits<BodyT>::enum_value) continue;
      BodyT body = *static_cast<const BodyT*>(message->body.value);
      messages.erase(message);
      return body;
    }
    return std::nullopt;
  }
  void forget_messages() { told.clear(); }

  // Everybody says hello, servers answer Declared.
  void meet();
  // ... and the first values are written, and training begins.
  void start(const wire::InitialisedT& from = {});
  // Asks for one batch, which there must be.
  SampleRange lease(int index);
  // Leases and trains, as the worker's push `sequence`.
  void train(int index, std::uint64_t sequence);
  // All servers answer Freeze with `entries`, Cut with CutDone.
  void freeze_all(const std::vector<WorkerClock>& entries);
  void copy_all();
  // The server has been told to go back to a cut, and has; returns which.
  std::uint64_t go_back(int index);
  // Asks for one, and makes it; returns its cut.
  std::uint64_t make_snapshot(const std::vector<WorkerClock>& entries);
  // The server was started anew, and has these files.
  void come_back(int index, std::vector<std::uint64_t> snapshots);
  void collect();

  wire::DeclarationT declaration;
  int servers;
  std::unique_ptr<Coordinator> coordinator;
  std::map<Party, std::deque<wire::MessageT>> told;
  std::map<Party, std::uint32_t> back_as;  // in the last RollBack
};

}  // namespace syncopate::ps
