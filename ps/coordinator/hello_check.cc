#include "ps/coordinator/registration.h"

#include <fmt/format.h>

#include <sstream>
#include <string>
#include <vector>

#include "models/base/log.h"
#include "ps/coordinator/reconnect_timeout.h"
#include "ps/coordinator/wire_conversion.h"

namespace syncopate::ps {
namespace {

template <typename T>
std::string text_of(const T& value) {
  std::ostringstream text;
  text.precision(17);
  text << std::boolalpha << value;
  return text.str();
}
template <typename T>
std::string text_of(const std::vector<T>& values) {
  std::string text = "[";
  for (const T& value : values) text += (text.size() > 1 ? ", " : "") + text_of(value);
  return text + "]";
}

// A field in which a task's declaration differs from the job's: its name, and both values as text.
struct Difference {
  std::string name;
  std::string job;
  std::string found;
};

class Comparison {
 public:
  template <typename T>
  Comparison& field(const std::string& name, const T& job, const T& found) {
    if (!first_ && !(job == found)) first_ = Difference{name, text_of(job), text_of(found)};
    return *this;
  }
  const std::optional<Difference>& first() const { return first_; }

 private:
  std::optional<Difference> first_;
};

const std::string* value_of(const wire::DeclarationT& declaration, const std::string& name) {
  for (const auto& agreement : declaration.agreements) {
    if (agreement->name == name) return &agreement->value;
  }
  return nullptr;
}

std::string shown(const std::string* value) {
  if (value == nullptr) return "nothing";
  return value->empty() ? "\"\"" : *value;
}

std::string line_of(const Difference& difference, int by, int worker) {
  return fmt::format("worker {} has {} {}, the job has {} (worker {}'s)", worker, difference.name,
                     difference.found, difference.job, by);
}

std::optional<Difference> first_agreement(const wire::DeclarationT& job, int by,
                                          const wire::DeclarationT& found, int worker) {
  std::optional<Difference> first;
  const auto compare = [&](const std::string& name, bool must) {
    const std::string* const expected = value_of(job, name);
    const std::string* const value = value_of(found, name);
    if (expected != nullptr && value != nullptr && *expected == *value) return;
    const Difference difference{name, shown(expected), shown(value)};
    if (!must) {
      log(LogLevel::kWarning, line_of(difference, by, worker));
    } else if (!first) {
      first = difference;
    }
  };
  for (const auto& agreement : job.agreements) compare(agreement->name, agreement->must);
  for (const auto& agreement : found.agreements) {
    if (value_of(job, agreement->name) == nullptr) compare(agreement->name, agreement->must);
  }
  return first;
}

std::string text_of(const wire::BucketPlace& bucket) {
  return fmt::format("elements {} to {} on server {}", bucket.begin(), bucket.end(),
                     bucket.owner());
}

std::optional<Difference> first_variable(const wire::DeclarationT& job,
                                         const wire::DeclarationT& found) {
  Comparison comparison;
  comparison.field("a number of variables of", job.variables.size(), found.variables.size());
  if (comparison.first()) return comparison.first();
  for (std::size_t v = 0; v < job.variables.size(); ++v) {
    const wire::VariableT& expected = *job.variables[v];
    const wire::VariableT& variable = *found.variables[v];
    comparison.field(fmt::format("as variable {}", v), expected.name, variable.name)
        .field("variable " + expected.name + " of shape", expected.shape, variable.shape)
        .field("weight decay of variable " + expected.name, expected.decays, variable.decays);
  }
  comparison.field("a number of buckets of", job.buckets.size(), found.buckets.size());
  if (comparison.first()) return comparison.first();
  for (std::size_t b = 0; b < job.buckets.size(); ++b) {
    comparison.field(fmt::format("as bucket {}", b), text_of(job.buckets[b]),
                     text_of(found.buckets[b]));
  }
  comparison.field("a number of running statistics of", job.state_elements, found.state_elements);
  return comparison.first();
}

std::string consistency_text(const wire::DeclarationT& declaration) {
  switch (consistency_of(declaration)) {
    case Consistency::kSync:
      return fmt::format("sync with {} backup worker(s)", declaration.backup_workers);
    case Consistency::kSsp:
      return fmt::format("ssp with staleness up to {}", declaration.max_staleness);
    case Consistency::kAsync:
      break;
  }
  return "async";
}

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

std::optional<wire::RefusedT> check_worker(const Job& job, const wire::HelloT& hello,
                                           const std::string& name) {
  if (hello.declaration == nullptr) return refuse(name + " sent no declaration", false);
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
  return std::nullopt;
}

}  // namespace

std::optional<std::string> find_difference(const wire::DeclarationT& job, int by,
                                           const wire::DeclarationT& found, int worker) {
  std::optional<Difference> difference = first_agreement(job, by, found, worker);
  if (!difference) difference = first_variable(job, found);
  if (!difference) {
    difference =
        Comparison()
            .field("the optimizer", job.optimizer, found.optimizer)
            .field("optimizer constants", job.optimizer_constants, found.optimizer_constants)
            .field("Nesterov momentum", job.nesterov, found.nesterov)
            .field("consistency", consistency_text(job), consistency_text(found))
            .field("staleness rule", int{job.staleness_rule}, int{found.staleness_rule})
            .field("workers", job.workers, found.workers)
            .field("dataset size", job.dataset_size, found.dataset_size)
            .field("batch size", job.batch_size, found.batch_size)
            .field("epochs", job.total_epochs, found.total_epochs)
            .field("steps", job.total_steps, found.total_steps)
            .field("epochs per evaluation", job.eval_every_epochs, found.eval_every_epochs)
            .field("steps per evaluation", job.eval_every_steps, found.eval_every_steps)
            .field("steps per checkpoint", job.checkpoint_every_steps, found.checkpoint_every_steps)
            .field("writing of checkpoints", job.writes_checkpoints, found.writes_checkpoints)
            .first();
  }
  if (!difference) return std::nullopt;
  return line_of(*difference, by, worker) + "; start all workers with the same flags";
}

std::optional<wire::RefusedT> find_refusal(const Job& job, const wire::HelloT& hello) {
  const std::string name =
      hello.role == 0 ? describe_worker(hello.index) : describe_server(hello.index);
  if (!job.options.nonce.empty() && hello.nonce != job.options.nonce) {
    return refuse(fmt::format("{} belongs to job \"{}\", this is job \"{}\"; end the tasks of the "
                              "other job, or choose another port",
                              name, hello.nonce, job.options.nonce),
                  false);
  }
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
  if (hello.incarnation == 0) return std::nullopt;
  // A server that was lost only because its timeout passed still has all its values and may return.
  const bool is_newer = job.generation > 0 && record.phase == ServerRecord::Phase::kLost &&
                        hello.incarnation > record.incarnation;
  return check_return(is_newer ? hello.incarnation : record.incarnation, hello.incarnation, true,
                      name, "", job.options.writes_snapshots);
}

}  // namespace syncopate::ps
