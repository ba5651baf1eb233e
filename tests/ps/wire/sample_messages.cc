#include "tests/ps/wire/sample_messages.h"

#include <memory>
#include <utility>

namespace syncopate::ps::wire {
namespace {

template <typename TableT>
std::unique_ptr<TableT> pointer(TableT table) {
  return std::make_unique<TableT>(std::move(table));
}

// Fills a table, whose constructors prevent designated initialisers.
template <typename TableT, typename Fill>
TableT filled(Fill fill) {
  TableT table;
  fill(table);
  return table;
}

DeclarationT declaration() {
  return filled<DeclarationT>([](DeclarationT& d) {
    for (const char* name : {"conv.weight", "conv.bias"}) {
      d.variables.push_back(pointer(filled<VariableT>([&](VariableT& v) {
        v.name = name;
        v.shape = {16, 3, 3, 3};
        v.decays = true;
      })));
    }
    d.buckets = {BucketPlace(0, 100, 0), BucketPlace(100, 448, 1)};
    d.state_elements = 32;
    d.optimizer = "adam";
    d.optimizer_constants = {0.9, 0.999, 1e-8};
    d.nesterov = true;
    d.consistency = 2;
    d.max_staleness = 3;
    d.backup_workers = 1;
    d.staleness_rule = 1;
    d.workers = 4;
    d.agreements.push_back(pointer(filled<AgreementT>([](AgreementT& a) {
      a.name = "seed";
      a.value = "1";
      a.must = true;
    })));
    d.dataset_size = 60000;
    d.batch_size = 64;
    d.total_epochs = 2;
    d.total_steps = 7;
    d.eval_every_epochs = 1;
    d.checkpoint_every_steps = 100;
    d.writes_checkpoints = true;
  });
}

ServerAddressT address() {
  return filled<ServerAddressT>([](ServerAddressT& a) {
    a.index = 1;
    a.endpoint = "10.0.0.7:4000";
    a.incarnation = 3;
    a.fingerprint = 77;
  });
}

StalenessT staleness() {
  return filled<StalenessT>([](StalenessT& s) {
    s.worker = 1;
    s.counts = {5, 0, 2};
    s.first = 3;
    s.sum = 4.0;
    s.max = 2;
  });
}

JobStatusT status() {
  return filled<JobStatusT>([](JobStatusT& s) {
    s.step = 5;
    s.samples = 320;
    s.loss = 2.5;
    s.metric = 100;
    s.live_workers = 3;
    s.staleness_mean = 0.5;
    s.staleness_max = 4;
    s.stopped_by = 1;
  });
}

StepSumsT sums() {
  return filled<StepSumsT>([](StepSumsT& s) {
    s.loss = 1.5;
    s.metric = 9;
    s.samples = 64;
    s.stops = {0, 1};
  });
}

std::vector<MessageT> meeting() {
  std::vector<MessageT> all;
  all.push_back(make_message(filled<HelloT>([](HelloT& h) {
    h.role = 1;
    h.index = 2;
    h.world_size = 4;
    h.num_servers = 3;
    h.host = "node1";
    h.pid = 123;
    h.incarnation = 9;
    h.sequence = 10;
    h.held = {SampleRange(1, 64, 128)};
    h.fingerprint = 77;
    h.call = 3;
    h.declaration = pointer(declaration());
    h.server = pointer(address());
    h.snapshots = {1, 2, 3};
  })));
  all.push_back(make_message(filled<WelcomeT>([](WelcomeT& w) {
    w.incarnation = 9;
    w.peer_timeout_ms = 5000;
    w.initialises = true;
    w.call = 3;
    w.servers.push_back(pointer(address()));
  })));
  all.push_back(make_message(filled<RefusedT>([](RefusedT& r) {
    r.line = "another nonce";
    r.is_usage_error = true;
    r.is_over = true;
  })));
  all.push_back(make_message(DeclarationRequestT{}));
  all.push_back(
      make_message(filled<RosterT>([](RosterT& r) { r.servers.push_back(pointer(address())); })));
  all.push_back(make_message(filled<DeclaredT>([](DeclaredT& d) {
    d.declaration = pointer(declaration());
    d.fingerprint = 77;
  })));
  all.push_back(make_message(filled<InitialisedT>([](InitialisedT& i) {
    i.step = 1;
    i.samples = 2;
    i.epoch = 3;
    i.offset = 4;
    i.untrained = {SampleRange(3, 0, 64)};
  })));
  all.push_back(make_message(filled<ReadyT>([](ReadyT& r) { r.incarnation = 2; })));
  all.push_back(make_message(filled<StartT>([](StartT& s) { s.step = s.samples = 5; })));
  return all;
}

std::vector<MessageT> watch() {
  std::vector<MessageT> all;
  all.push_back(make_message(filled<HeartbeatT>([](HeartbeatT& h) { h.step = 5; })));
  all.push_back(make_message(filled<WorkerLeftT>([](WorkerLeftT& w) { w.worker = 1; })));
  all.push_back(make_message(filled<LeaseRequestT>([](LeaseRequestT& l) { l.count = 2; })));
  all.push_back(make_message(filled<LeasesT>([](LeasesT& l) {
    l.ranges = {SampleRange(0, 0, 64), SampleRange(0, 64, 128)};
    l.finished = true;
    l.status = pointer(status());
  })));
  all.push_back(make_message(filled<StopRequestT>([](StopRequestT& s) { s.kind = 1; })));
  all.push_back(make_message(filled<ExchangeT>([](ExchangeT& e) {
    e.round = 1;
    e.text = {0, 255};
  })));
  all.push_back(make_message(filled<ExchangedT>([](ExchangedT& e) {
    e.round = 1;
    e.texts.push_back(pointer(filled<TextT>([](TextT& t) { t.text = {1, 2}; })));
  })));
  all.push_back(make_message(filled<FailingT>([](FailingT& f) { f.reason = "lost"; })));
  all.push_back(make_message(filled<RestingT>([](RestingT& r) { r.sequence = 17; })));
  all.push_back(make_message(LeavingT{}));
  all.push_back(make_message(FinishedT{}));
  return all;
}

std::vector<MessageT> snapshots() {
  std::vector<MessageT> all;
  all.push_back(make_message(filled<FreezeT>([](FreezeT& f) { f.snapshot = 3; })));
  all.push_back(make_message(filled<FrozenT>([](FrozenT& f) {
    f.entries = {SnapshotEntry(0, 1, 7), SnapshotEntry(1, 1, 8)};
  })));
  all.push_back(make_message(filled<SnapshotT>([](SnapshotT& c) {
    c.snapshot = 3;
    c.entries = {SnapshotEntry(0, 1, 7)};
    c.with_slots = c.to_file = true;
  })));
  all.push_back(make_message(filled<SnapshotDoneT>([](SnapshotDoneT& c) {
    c.snapshot = 3;
    c.staleness.push_back(pointer(staleness()));
  })));
  all.push_back(make_message(filled<ReleaseT>([](ReleaseT& r) { r.snapshot = 3; })));
  all.push_back(make_message(filled<AssignmentT>([](AssignmentT& a) {
    a.snapshot = 3;
    a.evaluates = a.writes_checkpoint = a.is_final = true;
    a.stopped_by = -1;
    a.untrained = {SampleRange(3, 0, 64)};
    a.loss = 0.5;
    a.staleness.push_back(pointer(staleness()));
  })));
  all.push_back(make_message(filled<AssignmentDoneT>([](AssignmentDoneT& a) { a.snapshot = 3; })));
  all.push_back(make_message(filled<RollBackT>([](RollBackT& r) { r.snapshot = 3; })));
  all.push_back(make_message(filled<ReadSnapshotT>([](ReadSnapshotT& r) { r.bucket = 5; })));
  all.push_back(make_message(filled<SnapshotValuesT>([](SnapshotValuesT& c) { c.state = true; })));
  return all;
}

std::vector<MessageT> steps() {
  std::vector<MessageT> all;
  all.push_back(make_message(filled<DataHelloT>([](DataHelloT& d) {
    d.ahead = {3, 5};
    d.segment = "name";
  })));
  all.push_back(
      make_message(filled<GreetingCallT>([](GreetingCallT& c) { c.challenge.assign(32, 7); })));
  all.push_back(make_message(filled<GreetingChallengeT>([](GreetingChallengeT& c) {
    c.answers.assign(32, 7);
    c.challenge.assign(32, 8);
  })));
  all.push_back(make_message(filled<GreetingProofT>([](GreetingProofT& p) {
    p.answers.assign(32, 7);
    p.proof.assign(32, 9);
  })));
  all.push_back(make_message(filled<DataWelcomeT>([](DataWelcomeT& d) { d.credit_bytes = 99; })));
  all.push_back(make_message(filled<PushT>([](PushT& p) {
    p.bucket = 2;
    p.sequence = 17;
    p.shard_incarnation = 1;
    p.version = 16;
    p.learning_rate = 0.1F;
    p.codec = Codec::TopK;
    p.in_segment = p.wants_values = p.ends_step = p.has_state = true;
    p.batches.emplace_back(0, 64, 128);
    p.inner_rates = {0.5F};
    p.lanes = 2;
    p.loss = 2.25;
    p.metric = 8;
    p.samples = 64;
    p.stops = {0, 1};
  })));
  all.push_back(make_message(filled<PullT>([](PullT& p) { p.buckets = {0, 1, 5}; })));
  all.push_back(make_message(filled<ValuesT>([](ValuesT& v) {
    v.bucket = 2;
    v.version = 17;
    v.sequence = 17;
    v.staleness = 1;
    v.report = pointer(sums());
  })));
  all.push_back(make_message(filled<ConsumedT>([](ConsumedT& c) { c.bytes = 4096; })));
  all.push_back(make_message(filled<ProbeT>([](ProbeT& p) { p.pushes.emplace_back(3, 17); })));
  all.push_back(
      make_message(filled<ProbeAnswerT>([](ProbeAnswerT& p) { p.unknown.emplace_back(3, 17); })));
  all.push_back(make_message(filled<WriteT>([](WriteT& w) { w.with_slots = true; })));
  all.push_back(make_message(filled<WrittenT>([](WrittenT& w) { w.bucket = 5; })));
  return all;
}

}  // namespace

std::vector<MessageT> sample_messages() {
  std::vector<MessageT> all;
  for (auto part : {&meeting, &watch, &snapshots, &steps}) {
    for (MessageT& message : part()) all.push_back(std::move(message));
  }
  return all;
}

}  // namespace syncopate::ps::wire
