// VirtualJob: the values, and what travels between servers and workers.
#include <algorithm>

#include "bench/compare/virtual/virtual_job.h"

namespace syncopate::bench {

using Doing = VirtualWorker::Doing;

std::span<float> VirtualJob::part_of(VirtualWorker& of, std::size_t bucket) const {
  const Bucket& range = shard_.buckets()[bucket];
  return std::span(of.values).subspan(static_cast<std::size_t>(range.begin),
                                      static_cast<std::size_t>(range.end - range.begin));
}

void VirtualJob::join(int w) {
  VirtualWorker& of = worker(w);
  if (of.is_alive) return;
  ++of.incarnation;
  of.is_alive = true;
  of.is_resting = false;
  of.heard = of.sequence;
  of.values.resize(shard_.values().f32().size());
  of.versions.resize(shard_.buckets().size());
  of.state = statistics_.average({});
  of.gradient.emplace(plan_.strategy.parameter_server.compression, plan_.placement);
  of.doing = Doing::kExchanging;
  of.computed = of.sent = of.answered = now();
  of.unanswered.assign(static_cast<std::size_t>(plan_.servers()), 0);
  of.parts_missing = plan_.servers();
  account(w).took_part = true;
  shard_.join(w, of.incarnation, of.sequence);
  // Read, not copied: delay compensation compares with what the shard gave out.
  for (std::size_t b = 0; b < of.versions.size(); ++b) {
    ++of.unanswered[static_cast<std::size_t>(plan_.placement.owner[b])];
    const bool takes_part = shard_.read({.worker = w,
                                         .incarnation = of.incarnation,
                                         .bucket = static_cast<BucketId>(b),
                                         .values = part_of(of, b),
                                         .token = of.incarnation});
    check(takes_part, "a worker reads that has joined");
  }
}

void VirtualJob::push(int w) {
  VirtualWorker& of = worker(w);
  of.doing = Doing::kExchanging;
  of.computed = of.sent = now();
  ++of.sequence;
  const int servers = plan_.servers();
  of.parts_missing = servers;
  std::ranges::fill(of.unanswered, 0);
  for (const int owner : plan_.placement.owner) ++of.unanswered[static_cast<std::size_t>(owner)];
  for (int i = 0; i < servers; ++i) {
    const int s = (w + i) % servers;  // so that not all begin with the same server
    const std::int64_t bytes = of.gradient->bytes_to(s);
    account(w).bytes_sent += bytes;
    const VirtualTime there = network_.up(now(), w, s, bytes);
    if (there == now()) {
      pushed(w, s);
    } else {
      queue_.add(there, w, {Happening::Kind::kPushed, w, of.incarnation, s});
    }
  }
}

void VirtualJob::pushed(int w, int server) {
  VirtualWorker& of = worker(w);
  of.sent = now();
  for (std::size_t b = 0; b < of.versions.size(); ++b) {
    if (plan_.placement.owner[b] != server) continue;
    const auto bucket = static_cast<BucketId>(b);
    const bool takes_part = shard_.push({.id = {w, of.incarnation, of.sequence},
                                         .bucket = bucket,
                                         .version = of.versions[b],
                                         .learning_rate = static_cast<float>(of.learning_rate),
                                         .gradient = of.gradient->part(bucket),
                                         .values = part_of(of, b),
                                         .token = of.incarnation});
    check(takes_part, "a living worker takes part");
  }
}

void VirtualJob::hear(const ps::ShardEvent& event) {
  using Kind = ps::ShardEvent::Kind;
  VirtualWorker& of = worker(event.worker);
  const bool is_its_own = of.is_alive && of.incarnation == event.token;
  switch (event.kind) {
    case Kind::kApplied:
      staleness_.add(event.staleness);
      end_ = now();
      [[fallthrough]];
    case Kind::kDropped:
      if (is_its_own && event.bucket == last_of_server_0_) end_step(event);
      return;
    case Kind::kAnswered: {
      if (!is_its_own) return;
      const auto b = static_cast<std::size_t>(event.bucket);
      const int server = plan_.placement.owner[b];
      of.versions[b] = event.version;
      if (--of.unanswered[static_cast<std::size_t>(server)] == 0) send_values(event.worker, server);
      return;
    }
    default:
      return;
  }
}

void VirtualJob::send_values(int w, int server) {
  VirtualWorker& of = worker(w);
  of.answered = now();
  // What training starts from is the seed's: every worker has it.
  const bool travels = of.sequence > 0 || now() > VirtualTime(0);
  const std::int64_t bytes = travels ? bytes_of_values(plan_.placement, server) : 0;
  account(w).bytes_received += bytes;
  const VirtualTime there = travels ? network_.down(now(), server, w, bytes) : now();
  if (there == now()) return answered(w);
  queue_.add(there, w, {Happening::Kind::kAnswered, w, of.incarnation, server});
}

void VirtualJob::answered(int w) {
  VirtualWorker& of = worker(w);
  if (--of.parts_missing > 0) return;
  const VirtualTime peers = std::max(VirtualTime(0), of.answered - of.sent);
  account(w).peers += peers;
  account(w).communication += now() - of.computed - peers;
  wait_for_batch(w);
}

}  // namespace syncopate::bench
