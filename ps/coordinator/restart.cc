#include "ps/coordinator/restart.h"

#include <algorithm>
#include <string>
#include <utility>

#include "models/base/errors.h"

namespace syncopate::ps {
namespace {

// More cuts than a job makes between two starts of shard 0.
constexpr std::uint64_t kCutsPerGeneration = 1'000'000;

}  // namespace

void go_on_from(SavedJob saved, Job& job, LeaseQueue& leases, Cuts& cuts) {
  if (saved.servers.size() != job.servers.size()) {
    throw FileError("the snapshot is of a job with " + std::to_string(saved.servers.size()) +
                    " servers, this one has " + std::to_string(job.servers.size()) +
                    "; start it with as many, or without the snapshot");
  }
  job.phase = Job::Phase::kTraining;
  job.declaration = saved.declaration;
  job.declared_by = saved.declared_by;
  job.generation = std::max(saved.generation + 1, job.options.life);
  job.last_cut = static_cast<std::uint64_t>(job.generation) * kCutsPerGeneration;
  job.workers.clear();
  for (const std::uint32_t incarnation : saved.worker_incarnations) {
    WorkerRecord worker;
    worker.phase = incarnation == 0 ? WorkerRecord::Phase::kAbsent : WorkerRecord::Phase::kAway;
    worker.incarnation = incarnation;
    job.workers.push_back(std::move(worker));
  }
  for (std::size_t s = 0; s < saved.servers.size(); ++s) {
    const SavedJob::Server& server = saved.servers[s];
    job.servers[s] = {.phase = ServerRecord::Phase::kLost,
                      .was_serving = true,
                      .incarnation = server.incarnation,
                      .endpoint = server.endpoint,
                      .fingerprint = server.fingerprint,
                      .snapshots = {server.snapshots.begin(), server.snapshots.end()}};
  }
  leases.restore(saved);
  if (saved.stopped_by) leases.stop(*saved.stopped_by);
  cuts.keep(std::move(saved));
}

}  // namespace syncopate::ps
