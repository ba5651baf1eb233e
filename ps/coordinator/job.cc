#include "ps/coordinator/job.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "ps/coordinator/declaration.h"
#include "ps/coordinator/wire_conversion.h"

namespace syncopate::ps {

namespace {

// How far the incarnations of a task that two successive starts of server 0 give out lie apart. A
// task that is restarted more often between the two is refused.
constexpr std::uint32_t kIncarnationsPerGeneration = 1U << 16U;

}  // namespace

std::string describe(const TaskId& task) {
  return fmt::format("{} {}", task.role == TaskId::Role::kWorker ? "worker" : "server", task.index);
}

std::string describe_worker(int index) { return describe({TaskId::Role::kWorker, index}); }
std::string describe_server(int index) { return describe({TaskId::Role::kServer, index}); }

void Job::declare(wire::DeclarationT of_job, int by) {
  fingerprint = fingerprint_of(of_job);
  declaration = std::move(of_job);
  declared_by = by;
}

bool Job::is_late_worker(int index) const {
  const std::vector<int>& late = options.late_workers;
  return std::find(late.begin(), late.end(), index) != late.end();
}

bool Job::is_present(int index) const {
  const WorkerPhase at = worker(index).phase;
  return at == WorkerPhase::kRegistering || is_admitted(index);
}

bool Job::is_admitted(int index) const {
  const WorkerPhase at = worker(index).phase;
  return at == WorkerPhase::kJoining || at == WorkerPhase::kReady || at == WorkerPhase::kTraining;
}

bool Job::is_training(int index) const { return worker(index).phase == WorkerPhase::kTraining; }

void Job::set_num_workers(int count) {
  workers.assign(static_cast<std::size_t>(count), {});
  counts_ = {};
  counts_[static_cast<std::size_t>(WorkerPhase::kAbsent)] = count;
}

void Job::set_phase(int index, WorkerPhase phase_now) {
  WorkerPhase& at = worker(index).phase;
  --counts_[static_cast<std::size_t>(at)];
  at = phase_now;
  ++counts_[static_cast<std::size_t>(at)];
}

int Job::count_present() const {
  return count(WorkerPhase::kRegistering) + count(WorkerPhase::kJoining) +
         count(WorkerPhase::kReady) + count(WorkerPhase::kTraining);
}

std::optional<int> Job::lowest_training() const {
  if (!is_any(WorkerPhase::kTraining)) return std::nullopt;
  for (int w = 0; w < num_workers(); ++w) {
    if (is_training(w)) return w;
  }
  return std::nullopt;
}

bool Job::all_servers_serve() const {
  return std::all_of(servers.begin(), servers.end(), [](const ServerRecord& server) {
    return server.phase == ServerRecord::Phase::kServing;
  });
}

bool Job::collects_gradients() const {
  return declaration &&
         declaration->staleness_rule == static_cast<std::uint8_t>(StalenessRule::kRennala);
}

std::int64_t Job::batches_per_step() const {
  if (collects_gradients()) return std::max<std::int64_t>(declaration->staleness_number, 1);
  if (consistency() != Consistency::kSync || is_synchronous()) return 1;
  return std::max(declaration->workers - declaration->backup_workers, 1);
}

std::optional<std::uint32_t> Job::next_incarnation(std::uint32_t last) const {
  const std::uint32_t first = kIncarnationsPerGeneration * static_cast<std::uint32_t>(generation);
  const std::uint32_t next = std::max(last + 1, first);
  if (next - first >= kIncarnationsPerGeneration) return std::nullopt;
  return next;
}

Consistency Job::consistency() const { return consistency_of(*declaration); }

bool Job::is_synchronous() const {
  return declaration && consistency() == Consistency::kSync && declaration->backup_workers == 0;
}

void Job::welcome_server(int index) {
  wire::WelcomeT welcome;
  welcome.incarnation = server(index).incarnation;
  welcome.peer_timeout_ms = options.peer_timeout_ms;
  welcome.process = options.process;
  send_to_server(index, std::move(welcome));
}

std::vector<std::unique_ptr<wire::ServerAddressT>> Job::roster() const {
  std::vector<std::unique_ptr<wire::ServerAddressT>> addresses;
  for (int s = 0; s < num_servers(); ++s) {
    auto address = std::make_unique<wire::ServerAddressT>();
    address->index = s;
    address->endpoint = server(s).endpoint;
    // While servers roll back, a reconnected worker must not send its old pushes to one of them.
    const bool is_there = server(s).phase == ServerRecord::Phase::kServing && !is_rolling_back;
    address->incarnation = is_there ? server(s).incarnation : 0;
    address->fingerprint = server(s).fingerprint;
    addresses.push_back(std::move(address));
  }
  return addresses;
}

void Job::send_roster_to(int index) {
  wire::RosterT message;
  message.servers = roster();
  send_to_worker(index, std::move(message));
}

void Job::send_roster() {
  for (int w = 0; w < num_workers(); ++w) {
    if (is_admitted(w)) send_roster_to(w);
  }
}

void Job::fail(const std::string& reason) {
  if (phase == Phase::kOver) return;
  wire::RefusedT refused;
  refused.line = reason;
  wire::FailingT failing;
  failing.reason = reason;
  // Tasks that are not admitted yet are sent a refusal instead of the failure.
  const bool have_all_registered = phase != Phase::kRegistering;
  for (int w = 0; w < num_workers(); ++w) {
    if (is_admitted(w)) {
      send_to_worker(w, failing);
    } else if (is_present(w)) {
      send_to_worker(w, refused);
    }
  }
  if (have_all_registered) {
    send_to_servers(failing);
  } else {
    send_to_servers(refused);
  }
  phase = Phase::kOver;
  failure = reason;
}

}  // namespace syncopate::ps
