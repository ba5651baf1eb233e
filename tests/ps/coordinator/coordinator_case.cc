#include "tests/ps/coordinator/coordinator_case.h"

#include <gtest/gtest.h>

#include <utility>

namespace syncopate::ps {

TaskId worker(int index) { return {TaskId::Role::kWorker, index}; }
TaskId server(int index) { return {TaskId::Role::kServer, index}; }

wire::DeclarationT make_declaration() {
  wire::DeclarationT declaration;
  declaration.optimizer = "sgd";
  declaration.consistency = static_cast<std::uint8_t>(Consistency::kAsync);
  declaration.workers = 2;
  declaration.dataset_size = 12;
  declaration.batch_size = 2;
  declaration.total_epochs = 2;
  return declaration;
}

std::vector<SampleRange> ranges_of(const wire::LeasesT& leases) {
  std::vector<SampleRange> ranges;
  for (const wire::SampleRange& range : leases.ranges) {
    ranges.push_back({range.epoch(), range.begin(), range.end()});
  }
  return ranges;
}

std::vector<WorkerClock> entries_of(const wire::SnapshotT& snapshot) {
  std::vector<WorkerClock> entries;
  for (const wire::SnapshotEntry& entry : snapshot.entries) {
    entries.push_back({entry.worker(), entry.incarnation(), entry.sequence()});
  }
  return entries;
}

wire::DeclarationT make_declaration(Consistency consistency) {
  wire::DeclarationT declaration = make_declaration();
  declaration.consistency = static_cast<std::uint8_t>(consistency);
  return declaration;
}

wire::PushT make_push(std::uint64_t sequence, const SampleRange& batch) {
  wire::PushT push;
  push.sequence = sequence;
  push.ends_step = true;
  push.batches.emplace_back(batch.epoch, batch.begin, batch.end);
  push.loss = 0.5;
  push.metric = 1;
  push.samples = batch.end - batch.begin;
  return push;
}

JobCase::JobCase(wire::DeclarationT declares, int num_servers, bool writes_snapshots)
    : declaration(std::move(declares)),
      servers(num_servers),
      coordinator(std::make_unique<Coordinator>(CoordinatorOptions{
          .nonce = "n", .servers = num_servers, .writes_snapshots = writes_snapshots})) {}

wire::HelloT JobCase::worker_hello(int index, std::uint32_t incarnation) const {
  wire::HelloT hello;
  hello.role = 0;
  hello.index = index;
  hello.incarnation = incarnation;
  hello.world_size = declaration.workers;
  hello.num_servers = servers;
  hello.host = "h";
  hello.pid = 7;
  hello.declaration = std::make_unique<wire::DeclarationT>(declaration);
  return hello;
}

wire::HelloT JobCase::server_hello(int index, std::uint32_t incarnation) const {
  wire::HelloT hello;
  hello.role = 1;
  hello.index = index;
  hello.incarnation = incarnation;
  hello.world_size = declaration.workers;
  hello.num_servers = servers;
  hello.server = std::make_unique<wire::ServerAddressT>();
  hello.server->index = index;
  hello.server->endpoint = "h:" + std::to_string(4000 + index);
  return hello;
}

std::string JobCase::send_hello(const wire::HelloT& hello) {
  const Coordinator::HelloAnswer answered = coordinator->on_hello(hello);
  collect();
  if (answered.task) {
    // A server builds its shard when it receives the job's declaration.
    for (int s = 0; s < servers; ++s) {
      if (!take<wire::DeclaredT>(server(s))) continue;
      wire::DeclaredT answer;
      answer.fingerprint = 7;
      send(server(s), std::move(answer));
    }
    return "";
  }
  const wire::RefusedT* const refused = answered.answer.body.AsRefused();
  return refused == nullptr ? "refused without a line" : refused->line;
}

void JobCase::lose(const TaskId& task, const std::string& reason) {
  coordinator->on_task_lost(task, reason);
  collect();
}

void JobCase::trained(int index, std::uint64_t sequence, const SampleRange& batch) {
  trained(index, 1, make_push(sequence, batch));
}

void JobCase::trained(int index, std::uint32_t incarnation, const wire::PushT& push) {
  coordinator->on_push_applied(index, incarnation, push, ++version);
  collect();
}

void JobCase::send_ready(int index, std::uint64_t sequence) {
  wire::ReadyT ready;
  ready.sequence = sequence;
  ready.incarnation = server_0_incarnation[worker(index)];
  send(worker(index), ready);
}

void JobCase::dropped(int index, std::uint64_t sequence, const SampleRange& batch) {
  coordinator->on_push_dropped(index, 1, make_push(sequence, batch));
  collect();
}

void JobCase::register_all() {
  for (int s = 0; s < servers; ++s) ASSERT_EQ(send_hello(server_hello(s)), "");
  for (int w = 0; w < declaration.workers; ++w) ASSERT_EQ(send_hello(worker_hello(w)), "");
}

void JobCase::start(const wire::InitialisedT& from) {
  register_all();
  send(worker(0), from);
  for (int w = 1; w < declaration.workers; ++w) send(worker(w), wire::ReadyT{});
  ASSERT_TRUE(coordinator->has_started());
  clear_messages();
}

SampleRange JobCase::lease(int index) {
  wire::LeaseRequestT request;
  request.count = 1;
  send(worker(index), request);
  const auto leases = take<wire::LeasesT>(worker(index));
  if (!leases || leases->ranges.size() != 1) {
    ADD_FAILURE() << "no batch for worker " << index;
    return {};
  }
  return ranges_of(*leases).front();
}

void JobCase::train(int index, std::uint64_t sequence) { trained(index, sequence, lease(index)); }

void JobCase::freeze_all(const std::vector<WorkerClock>& entries) {
  for (int s = 0; s < servers; ++s) {
    const auto freeze = take<wire::FreezeT>(server(s));
    ASSERT_TRUE(freeze) << "server " << s << " did not receive Freeze";
    wire::FrozenT frozen;
    frozen.snapshot = freeze->snapshot;
    for (const WorkerClock& entry : entries) {
      frozen.entries.emplace_back(entry.worker, entry.incarnation, entry.sequence);
    }
    send(server(s), std::move(frozen));
  }
}

void JobCase::copy_all() {
  for (int s = 0; s < servers; ++s) {
    const auto snapshot = take<wire::SnapshotT>(server(s));
    ASSERT_TRUE(snapshot) << "server " << s << " did not receive Snapshot";
    wire::SnapshotDoneT done;
    done.snapshot = snapshot->snapshot;
    send(server(s), std::move(done));
  }
}

void JobCase::freeze_and_copy(const std::vector<WorkerClock>& entries) {
  freeze_all(entries);
  copy_all();
}

void JobCase::request_snapshot() {
  coordinator->request_snapshot();
  collect();
}

std::uint64_t JobCase::roll_back(int index) {
  const auto back = take<wire::RollBackT>(server(index));
  if (!back) {
    ADD_FAILURE() << "server " << index << " did not receive RollBack";
    return 0;
  }
  send(server(index), *back);
  return back->snapshot;
}

std::uint64_t JobCase::make_snapshot(const std::vector<WorkerClock>& entries) {
  request_snapshot();
  const std::uint64_t snapshot = received[server(0)].back().body.AsFreeze()->snapshot;
  freeze_and_copy(entries);
  return snapshot;
}

std::vector<std::byte> JobCase::save(const std::vector<WorkerClock>& entries) {
  request_snapshot();
  const std::uint64_t snapshot = received[server(0)].back().body.AsFreeze()->snapshot;
  freeze_all(entries);
  return coordinator->save(snapshot).value();
}

void JobCase::restart_server(int index, std::vector<std::uint64_t> snapshots) {
  wire::HelloT hello = server_hello(index);
  hello.server->endpoint = "h:5000";
  hello.snapshots = std::move(snapshots);
  EXPECT_EQ(send_hello(hello), "");
}

void JobCase::collect() {
  for (Outgoing& outgoing : coordinator->take_outgoing()) {
    if (const auto* back = outgoing.message.body.AsRollBack()) {
      server_0_incarnation[outgoing.to] = back->incarnation;
    }
    received[outgoing.to].push_back(std::move(outgoing.message));
  }
}

void finish_assignment(JobCase& job, int index, std::uint64_t snapshot) {
  wire::AssignmentDoneT done;
  done.snapshot = snapshot;
  job.send(worker(index), done);
}

wire::DeclarationT with_checkpoints(std::int64_t every_steps) {
  wire::DeclarationT declaration = make_declaration();
  declaration.writes_checkpoints = true;
  declaration.checkpoint_every_steps = every_steps;
  return declaration;
}

}  // namespace syncopate::ps
