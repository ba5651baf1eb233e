#include "worker/train/worker_times.h"

#include <algorithm>
#include <iterator>

namespace syncopate {
namespace {

// The numbers that a task sends: first its own, then those of each of its replicas.
enum : std::ptrdiff_t { kFirst, kCount, kSeconds, kInputWait, kSent, kReceived, kOfTask };
enum : std::ptrdiff_t { kExposed, kPeersWait, kOfReplica };
constexpr std::int64_t kNotCounted = -1;

std::optional<std::int64_t> bytes_of(double counted) {
  return counted < 0.0 ? std::nullopt : std::optional(static_cast<std::int64_t>(counted));
}

}  // namespace

WorkerTimes::WorkerTimes(Strategy& strategy) : strategy_(strategy) {
  for (const Replica& replica : strategy.replicas()) {
    at_start_.push_back(replica.variables->times());
  }
}

double WorkerTimes::exposed_seconds() const {
  return strategy_.replicas().front().variables->times().exposed_seconds -
         at_start_.front().exposed_seconds;
}

void WorkerTimes::write(const Totals& totals, MetricsWriter& metrics) const {
  const InputShard shard = strategy_.input_shard();
  // Bytes are counted per process, so those of the first replica are those of the task.
  const CommunicationTimes times = strategy_.replicas().front().variables->times();
  std::vector<double> mine(kOfTask);
  mine[kFirst] = shard.first;
  mine[kCount] = shard.count;
  mine[kSeconds] = totals.seconds;
  mine[kInputWait] = totals.input_wait_seconds;
  mine[kSent] = static_cast<double>(times.bytes_sent.value_or(kNotCounted));
  mine[kReceived] = static_cast<double>(times.bytes_received.value_or(kNotCounted));
  // All tasks must gather equally many numbers, though their replica counts may differ.
  const double count = shard.count;
  const std::vector<double> counts = synchronous_job(strategy_).gather({&count, 1});
  const auto most = static_cast<std::size_t>(*std::ranges::max_element(counts));
  mine.resize(kOfTask + kOfReplica * most);
  auto replica_says = mine.begin() + kOfTask;
  for (const Replica& replica : strategy_.replicas()) {
    const CommunicationTimes its = replica.variables->times();
    const CommunicationTimes& before = at_start_[static_cast<std::size_t>(replica.index)];
    replica_says[kExposed] = its.exposed_seconds - before.exposed_seconds;
    replica_says[kPeersWait] =
        its.peers_wait_seconds.value_or(0.0) - before.peers_wait_seconds.value_or(0.0);
    replica_says += kOfReplica;
  }
  const std::vector<double> all = synchronous_job(strategy_).gather(mine);
  for (auto task = all.begin(); task != all.end(); task += std::ssize(mine)) {
    for (int r = 0; r < static_cast<int>(task[kCount]); ++r) {
      const auto its = task + kOfTask + r * kOfReplica;
      const double compute = task[kSeconds] - its[kExposed] - task[kInputWait];
      WorkerMetrics line{
          .worker = static_cast<int>(task[kFirst]) + r,
          .steps = totals.steps,
          .samples = totals.samples / shard.total,
          .seconds = task[kSeconds],
          .compute_seconds = std::max(0.0, compute),
          .communication_exposed_seconds = std::max(0.0, its[kExposed] - its[kPeersWait]),
          .input_wait_seconds = task[kInputWait],
          .bytes_sent = bytes_of(task[kSent]),
          .bytes_received = bytes_of(task[kReceived])};
      if (times.peers_wait_seconds) line.peers_wait_seconds = its[kPeersWait];
      metrics.write(line);
    }
  }
}

}  // namespace syncopate
