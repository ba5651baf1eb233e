#include "ps/coordinator/hello_check.h"

#include <string>

#include "ps/coordinator/declaration.h"
#include "ps/coordinator/resume_advice.h"

namespace syncopate::ps {
namespace {

using Phase = WorkerRecord::Phase;

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
    return refuse(name + " was started for " + std::to_string(theirs) + " " + what +
                      ", the job has " + std::to_string(ours) +
                      "; give all tasks the same numbers of workers and servers",
                  true);
  };
  if (hello.world_size != workers) return differs("workers", hello.world_size, workers);
  if (hello.num_servers != job.num_servers()) {
    return differs("servers", hello.num_servers, job.num_servers());
  }
  if (workers < 1 || workers > kMostWorkers) {
    return refuse(name + " was started for " + std::to_string(workers) +
                      " workers; expected 1 to " + std::to_string(kMostWorkers),
                  true);
  }
  const int count = hello.role == 0 ? workers : job.num_servers();
  if (hello.index >= 0 && hello.index < count) return std::nullopt;
  return refuse(name + " is none of the job's: it has " + std::to_string(count) +
                    (hello.role == 0 ? " workers" : " servers") + ", 0 to " +
                    std::to_string(count - 1) + "; is an index given twice or left out?",
                true);
}

// Of a task that was let in before, by us or by a shard 0 that we do not know of.
std::optional<wire::RefusedT> check_return(std::uint32_t ours, std::uint32_t theirs, bool is_known,
                                           const std::string& name, const std::string& reason,
                                           bool keeps_snapshots) {
  if (is_known && ours == theirs) return std::nullopt;
  if (ours == 0) {
    return refuse("server 0 was started again without a snapshot and knows nothing of " + name +
                      (keeps_snapshots ? again_advice(true)
                                       : "; give --checkpoint-dir so that snapshots are kept"),
                  false);
  }
  if (ours != theirs) {
    return refuse(name + " calls again as its incarnation " + std::to_string(theirs) +
                      ", but incarnation " + std::to_string(ours) + " has taken its place",
                  false);
  }
  return refuse(name + " was given up (" + reason + "), and the job went on without it", false);
}

std::optional<wire::RefusedT> check_worker(const Job& job, const wire::HelloT& hello,
                                           const std::string& name) {
  if (hello.declaration == nullptr) return refuse(name + " does not say what it trains", false);
  if (hello.declaration->workers != hello.world_size) {
    return refuse(name + " declares " + std::to_string(hello.declaration->workers) +
                      " workers, but was started for " + std::to_string(hello.world_size),
                  true);
  }
  if (job.declaration) {
    const auto difference =
        find_difference(*job.declaration, job.declared_by, *hello.declaration, hello.index);
    if (difference) return refuse(*difference, true);
  }
  if (job.workers.empty()) return std::nullopt;
  const WorkerRecord& record = job.worker(hello.index);
  if (hello.incarnation != 0) {
    // One that is known from a snapshot may have been started anew since.
    const bool is_away = record.phase == Phase::kAway && hello.incarnation >= record.incarnation;
    return check_return(is_away ? hello.incarnation : record.incarnation, hello.incarnation,
                        is_away || job.is_present(hello.index), name, record.reason,
                        job.options.writes_snapshots);
  }
  const bool has_started = job.phase == Job::Phase::kTraining && record.phase != Phase::kAbsent;
  if (job.is_in_step() && has_started) {
    return refuse(name +
                      " has started already, and under --consistency sync a job cannot take it in "
                      "again" +
                      again_advice(job.declaration->writes_checkpoints),
                  false);
  }
  return std::nullopt;
}

}  // namespace

std::optional<wire::RefusedT> find_refusal(const Job& job, const wire::HelloT& hello) {
  const std::string name =
      hello.role == 0 ? describe_worker(hello.index) : describe_server(hello.index);
  if (!job.options.nonce.empty() && hello.nonce != job.options.nonce) {
    return refuse(name + " belongs to job \"" + hello.nonce + "\", this is job \"" +
                      job.options.nonce + "\"; does a task of another job still run?",
                  false);
  }
  if (hello.role > 1) {
    return refuse(
        "a task has role " + std::to_string(hello.role) + "; expected 0, a worker, or 1, a server",
        false);
  }
  if (job.failure) return refuse(*job.failure, false);
  // Whoever was in it may still need to hear so.
  const bool is_over = job.phase == Job::Phase::kOver ||
                       (job.phase == Job::Phase::kFinishing && hello.incarnation == 0);
  if (is_over) {
    wire::RefusedT refused = refuse(name + " came when the job was over", false);
    refused.is_over = !job.options.nonce.empty();  // else it may be another job's
    return refused;
  }
  if (auto refused = check_size(job, hello, name)) return refused;
  if (hello.role == 0) return check_worker(job, hello, name);
  const ServerRecord& record = job.server(hello.index);
  if (hello.server == nullptr) return refuse(name + " does not say where it serves", false);
  if (hello.incarnation == 0) return std::nullopt;
  // A server that was taken for dead has all its values still.
  const bool is_newer = job.generation > 0 && record.phase == ServerRecord::Phase::kLost &&
                        hello.incarnation > record.incarnation;
  return check_return(is_newer ? hello.incarnation : record.incarnation, hello.incarnation, true,
                      name, "", job.options.writes_snapshots);
}

}  // namespace syncopate::ps
