// Injects the faults of a random job, and checks the properties that must hold at the job's end.
#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "tests/ps/coordinator/schedule_job.h"

namespace syncopate::ps {
namespace {

using Key = std::tuple<std::int64_t, std::int64_t, std::int64_t>;

Key key_of(const SampleRange& batch) { return {batch.epoch, batch.begin, batch.end}; }

std::map<Key, int> count_batches(const std::vector<TrainingPush>& applied) {
  std::map<Key, int> counts;
  for (const TrainingPush& push : applied) {
    for (const SampleRange& batch : push.batches) ++counts[key_of(batch)];
  }
  return counts;
}

bool is_untrained(const wire::AssignmentT& assignment, const SampleRange& batch) {
  if (std::pair(batch.epoch, batch.begin) >= std::pair(assignment.epoch, assignment.offset)) {
    return true;
  }
  return std::any_of(assignment.untrained.begin(), assignment.untrained.end(),
                     [&](const wire::SampleRange& range) {
                       return range.epoch() == batch.epoch && range.begin() == batch.begin;
                     });
}

}  // namespace

void ScheduledJob::check_assignment(const wire::AssignmentT& assignment) {
  const auto copy = servers_[0].copies().find(assignment.snapshot);
  if (copy == servers_[0].copies().end()) return add_mistake("an assignment without a copy");
  const bool is_exact = !lost_workers_;
  std::vector<TrainingPush> in_values = copy->second.applied;
  if (collects()) {
    const auto size = static_cast<std::uint64_t>(batches_per_step());
    in_values.resize((copy->second.version - 1) / size * size);
  }
  const std::map<Key, int> copied = count_batches(in_values);
  std::int64_t trained = 0;
  for (const SampleRange& batch : batches_) {
    const auto found = copied.find(key_of(batch));
    const int times = found == copied.end() ? 0 : found->second;
    const bool is_trained = !is_untrained(assignment, batch);
    trained += is_trained ? 1 : 0;
    if (is_trained && times == 0) add_mistake("a snapshot counts a batch that is not in the copy");
    if (is_exact && times != (is_trained ? 1 : 0))
      add_mistake("a snapshot does not count what is in it");
  }
  if (assignment.step != start_.step + trained / batches_per_step())
    add_mistake("step and position of a snapshot differ");
  const std::int64_t losses = collects() ? batches_per_step() : 1;
  if (assignment.loss * static_cast<double>(losses) != static_cast<double>(trained))
    add_mistake("step and loss of a snapshot differ");
  // Under async, servers roll back alone.
  const bool are_equal = !lost_servers_ || consistency_of(declaration_) != Consistency::kAsync;
  // Servers drop gradients by themselves.
  const bool drops = declaration_.backup_workers > 0 || declaration_.staleness_rule != 0;
  if (is_exact && are_equal && !drops) {
    for (const ScheduledServer& server : servers_) {
      const auto theirs = server.copies().find(assignment.snapshot);
      if (theirs == server.copies().end()) {
        if (!lost_servers_) add_mistake("a server has no copy of a snapshot");
        continue;  // the server was killed after it had reported its copy
      }
      if (count_batches(theirs->second.applied) != copied) {
        add_mistake("two servers' copies of a snapshot differ");
      }
    }
  }
}

void ScheduledJob::check_end() {
  for (const ScheduledServer& server : servers_) {
    for (const std::string& mistake : server.mistakes()) add_mistake(mistake);
  }
  if (!coordinator_->is_over()) return add_mistake("no event is possible, and the job is not over");
  if (coordinator_->failure()) return;
  for (const ScheduledWorker& worker : workers_) {
    if (worker.is_alive && !worker.has_left() && !worker.failure())
      add_mistake("a worker has not left");
  }
  if (is_synchronous()) {
    const std::int64_t steps = std::max<std::int64_t>(declaration_.total_steps - start_.step, 0);
    for (const ScheduledServer& server : servers_) {
      // A server that is restarted after all workers have left has no job, so its version is not
      // checked.
      if (lost_servers_ && !server.is_finished()) continue;
      if (server.version() != static_cast<std::uint64_t>(steps) + 1)
        add_mistake("steps are missing");
    }
    return;
  }
  if (was_stopped_) return;
  std::int64_t samples = start_.samples;
  for (const SampleRange& batch : batches_) samples += batch.end - batch.begin;
  if (coordinator_->status().samples != samples) add_mistake("samples were not counted once");
  const std::map<Key, int> counts = count_batches(servers_[0].applied());
  for (const SampleRange& batch : batches_) {
    const auto found = counts.find(key_of(batch));
    if (found == counts.end()) return add_mistake("a batch was not trained");
    if (found->second > 1 && !lost_workers_) {
      return add_mistake("a batch was trained twice although no worker was lost");
    }
  }
  if (counts.size() != batches_.size()) add_mistake("batches of another job were trained");
}

void ScheduledJob::disturb() {
  if (coordinator_->is_over()) return;
  const bool is_ending =
      has_ended_ || std::any_of(workers_.begin(), workers_.end(),
                                [](const ScheduledWorker& worker) { return worker.has_left(); });
  --disturbances_left_;
  switch (chance_.below(4)) {
    case 0:
      // Only asynchronous workers are asked to stop here: synchronous workers stop without the
      // coordinator.
      if (coordinator_->has_started() && !is_synchronous()) {
        workers_[static_cast<std::size_t>(chance_.below(workers_.size()))].stop(0);
        was_stopped_ = true;
      }
      return;
    case 1:
      return kill_worker();
    case 2:
      if (!is_ending) kill_server();
      return;
    default:
      if (!is_ending) kill_server_0();
      return;
  }
}

void ScheduledJob::kill_worker() {
  const int w = chance_.below(workers_.size());
  ScheduledWorker& worker = workers_[static_cast<std::size_t>(w)];
  if (!worker.is_alive || worker.has_left() || is_synchronous()) return;
  worker.is_alive = false;
  worker.sent.clear();
  lost_workers_ = true;
  const bool is_last = std::none_of(workers_.begin(), workers_.end(), [](const auto& other) {
    return other.is_alive && !other.has_left();
  });
  // Before the start every worker is needed, as no other worker writes the initial values.
  const bool is_needed = is_last || !coordinator_->has_started();
  if (!is_needed && chance_.one_in(3)) not_restarted_.insert(w);
}

void ScheduledJob::kill_server() {
  if (servers_.size() < 2) return;
  const int s = 1 + chance_.below(servers_.size() - 1);
  ScheduledServer& server = servers_[static_cast<std::size_t>(s)];
  if (!server.is_alive || server.files().empty()) return;
  server.is_alive = false;
  to_send_hello_.erase(s);
  lost_servers_ = true;
}

void ScheduledJob::kill_server_0() {
  if (servers_[0].files().empty() || !coordinator_->has_started()) return;
  coordinator_ = make_coordinator();
  for (const auto& [snapshot, file] : servers_[0].files()) coordinator_->restore(file.coordinator);
  servers_[0].restart();
  processes_[{TaskId::Role::kServer, 0}] = next_process_++;
  links_.clear();
  events_.clear();
  lost_servers_ = true;
  for (int s = 0; s < static_cast<int>(servers_.size()); ++s) {
    servers_[static_cast<std::size_t>(s)].replies.clear();
    if (servers_[static_cast<std::size_t>(s)].is_alive) to_send_hello_.insert(s);
  }
  for (ScheduledWorker& worker : workers_) {
    if (worker.is_alive) worker.call_again();
  }
}

std::string ScheduledJob::description() const {
  std::string text = "workers " + std::to_string(declaration_.workers) + ", servers " +
                     std::to_string(servers_.size()) + ", consistency " +
                     std::to_string(declaration_.consistency) + ", backup workers " +
                     std::to_string(declaration_.backup_workers);
  if (declaration_.staleness_rule != 0) {
    text += ", staleness rule " + std::to_string(declaration_.staleness_rule) + ":" +
            std::to_string(declaration_.staleness_number);
  }
  if (declaration_.outer != nullptr) text += ", rounds";
  if (lost_workers_) text += ", workers lost";
  if (lost_servers_) text += ", servers lost";
  if (was_stopped_) text += ", stopped";
  if (coordinator_->failure()) text += "; failed: " + *coordinator_->failure();
  return text;
}

}  // namespace syncopate::ps
