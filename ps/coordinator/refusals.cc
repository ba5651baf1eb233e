#include "ps/coordinator/refusals.h"

#include <fmt/format.h>

#include <string>

#include "models/base/secret.h"
#include "ps/coordinator/declaration.h"
#include "ps/coordinator/reconnect_timeout.h"

namespace syncopate::ps {
namespace {

constexpr int kMostWorkers = 1 << 16;

wire::RefusedT refuse(const std::string& line, bool is_usage_error) {
  wire::RefusedT refused;
  refused.line = line;
  refused.is_usage_error = is_usage_error;
  return refused;
}

std::optional<wire::RefusedT> check_size(const Job& job, const wire::HelloT& hello,
                                         const std::string& name) {
  const int workers = job.workers.empty() ? hello.world_size : job.num_workers();
  const auto differs = [&](const std::string& what, int theirs, int ours) {
    return refuse(fmt::format("{} was started for {} {}, the job has {}; give all tasks the same "
                              "numbers of workers and servers",
                              name, theirs, what, ours),
                  true);
  };
  if (hello.world_size != workers) return differs("workers", hello.world_size, workers);
  if (hello.num_servers != job.num_servers()) {
    return differs("servers", hello.num_servers, job.num_servers());
  }
  if (workers < 1 || workers > kMostWorkers) {
    return refuse(
        fmt::format("{} was started for {} workers; expected 1 to {}", name, workers, kMostWorkers),
        true);
  }
  const int count = hello.role == 0 ? workers : job.num_servers();
  if (hello.index >= 0 && hello.index < count) return std::nullopt;
  return refuse(fmt::format("{} is not part of the job, which has {} {}, 0 to {}; check that each "
                            "index is given exactly once",
                            name, count, hello.role == 0 ? "workers" : "servers", count - 1),
                true);
}

// Checks the Hello of a task that reconnects: `ours` is the incarnation that the coordinator knows,
// `theirs` the incarnation that the task was given, possibly by a previous server 0.
std::optional<wire::RefusedT> check_return(std::uint32_t ours, std::uint32_t theirs, bool is_known,
                                           const std::string& name, const std::string& reason,
                                           bool keeps_snapshots) {
  if (is_known && ours == theirs) return std::nullopt;
  if (ours == 0) {
    return refuse(
        fmt::format("server 0 was restarted without a snapshot and does not know {}{}", name,
                    keeps_snapshots ? again_advice(true)
                                    : "; give --checkpoint-dir so that snapshots are kept"),
        false);
  }
  if (ours != theirs) {
    return refuse(fmt::format("{} reconnects as incarnation {}, but incarnation {} has replaced it",
                              name, theirs, ours),
                  false);
  }
  return refuse(fmt::format("{} was lost ({}), and the job continued without it", name, reason),
                false);
}

std::optional<wire::RefusedT> check_restart(const Job& job, std::uint32_t last,
                                            const std::string& name) {
  if (job.next_incarnation(last)) return std::nullopt;
  return refuse(name + " was restarted too often since server 0 started; see its output", false);
}

std::optional<wire::RefusedT> check_worker(const Job& job, const wire::HelloT& hello,
                                           const std::string& name) {
  if (hello.declaration != nullptr) {
    if (hello.declaration->workers != hello.world_size) {
      return refuse(fmt::format("{} declares {} workers, but was started for {}", name,
                                hello.declaration->workers, hello.world_size),
                    true);
    }
    if (job.declaration) {
      const auto difference =
          find_difference(*job.declaration, job.declared_by, *hello.declaration, hello.index);
      if (difference) return refuse(*difference, true);
    }
  }
  if (job.workers.empty()) return std::nullopt;
  const WorkerRecord& record = job.worker(hello.index);
  if (hello.incarnation != 0) {
    // A restarted server 0 knows the incarnations at the time of the snapshot; a disconnected
    // worker may have been restarted since then.
    const bool is_disconnected =
        record.phase == WorkerPhase::kDisconnected && hello.incarnation >= record.incarnation;
    return check_return(is_disconnected ? hello.incarnation : record.incarnation, hello.incarnation,
                        is_disconnected || job.is_present(hello.index), name, record.reason,
                        job.options.writes_snapshots);
  }
  const bool has_started =
      job.phase == Job::Phase::kTraining && record.phase != WorkerPhase::kAbsent;
  if (job.is_synchronous() && has_started) {
    return refuse(
        fmt::format("{} has started already, and a job with --consistency sync cannot admit "
                    "it again{}",
                    name, again_advice(job.declaration->writes_checkpoints)),
        false);
  }
  return check_restart(job, record.incarnation, name);
}

}  // namespace

wire::RefusedT refuse_other_job(const wire::HelloT& hello) {
  const std::string name =
      hello.role == 0 ? describe_worker(hello.index) : describe_server(hello.index);
  return refuse(fmt::format("{} belongs to another job than server 0 at this port: {}; is one of "
                            "them left from an earlier run, or do two jobs share a port?",
                            name, kOtherNonce),
                false);
}

std::optional<wire::RefusedT> find_refusal(const Job& job, const wire::HelloT& hello) {
  const std::string name =
      hello.role == 0 ? describe_worker(hello.index) : describe_server(hello.index);
  if (hello.role > 1) {
    return refuse(
        fmt::format("a task has role {}; expected 0, a worker, or 1, a server", hello.role), false);
  }
  if (job.failure) return refuse(*job.failure, false);
  // A task that was part of a finished job may reconnect to receive Finished.
  const bool is_over = job.phase == Job::Phase::kOver ||
                       (job.phase == Job::Phase::kFinishing && hello.incarnation == 0);
  if (is_over) {
    wire::RefusedT refused = refuse(name + " registered after the job was over", false);
    refused.is_over =
        !job.options.nonce.empty();  // without a nonce, the task may be of another job
    return refused;
  }
  if (auto refused = check_size(job, hello, name)) return refused;
  if (hello.role == 0) return check_worker(job, hello, name);
  const ServerRecord& record = job.server(hello.index);
  if (hello.server == nullptr) return refuse(name + " sent no address", false);
  if (hello.incarnation == 0) return check_restart(job, record.incarnation, name);
  // A server that was lost only because its timeout passed still has all its values and may return.
  const bool is_newer = job.generation > 0 && record.phase == ServerRecord::Phase::kLost &&
                        hello.incarnation > record.incarnation;
  return check_return(is_newer ? hello.incarnation : record.incarnation, hello.incarnation, true,
                      name, "", job.options.writes_snapshots);
}

bool lacks_declaration(const Job& job, const wire::HelloT& hello) {
  const bool is_new_worker = hello.role == 0 && hello.incarnation == 0;
  return is_new_worker && job.declaration && hello.declaration == nullptr &&
         hello.fingerprint != job.fingerprint;
}

}  // namespace syncopate::ps
