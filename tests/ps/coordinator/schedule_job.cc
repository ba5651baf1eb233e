#include "tests/ps/coordinator/schedule_job.h"

#include <algorithm>
#include <utility>

namespace syncopate::ps {
namespace {

constexpr int kMostSteps = 20000;

TaskId worker_id(int index) { return {TaskId::Role::kWorker, index}; }
TaskId server_id(int index) { return {TaskId::Role::kServer, index}; }

}  // namespace

ScheduledJob::ScheduledJob(std::uint64_t seed, const Size& size)
    : chance_(seed),
      rule_chance_(seed + (std::uint64_t{1} << 32)),
      size_(size),
      is_large_(size.workers + size.servers > 0),
      declaration_(random_declaration()),
      start_(random_start()),
      batches_(expected_batches()) {
  const ConsistencyOptions consistency{.consistency = consistency_of(declaration_),
                                       .max_staleness = declaration_.max_staleness,
                                       .backup_workers = declaration_.backup_workers,
                                       .quorum = declaration_.quorum,
                                       .staleness_rule = StalenessRule{declaration_.staleness_rule},
                                       .rule_number = declaration_.staleness_number};
  int servers = size.servers > 0 ? size.servers : 1 + chance_.below(3);
  if (consistency.consistency == Consistency::kQuorum) servers = 1;  // it decides each merge
  for (int s = 0; s < servers; ++s) {
    servers_.emplace_back(s, consistency);
    to_send_hello_.insert(s);
    processes_[server_id(s)] = next_process_++;
  }
  for (int w = 0; w < declaration_.workers; ++w) {
    workers_.emplace_back(w, declaration_, start_, servers_);
    workers_.back().start();
    processes_[worker_id(w)] = next_process_++;
  }
  coordinator_ = make_coordinator();
  disturbances_left_ = chance_.one_in(3) ? 0 : chance_.below(5);
}

std::unique_ptr<Coordinator> ScheduledJob::make_coordinator() {
  return std::make_unique<Coordinator>(
      CoordinatorOptions{.nonce = "",
                         .servers = static_cast<int>(servers_.size()),
                         .writes_snapshots = true,
                         .life = restarts_++});
}

void ScheduledJob::run() {
  const int most_steps = kMostSteps * (is_large_ ? 1000 : 1);
  for (int i = 0; i < most_steps && mistakes_.empty(); ++i) {
    if (!step()) {
      check_end();
      return;
    }
  }
  if (mistakes_.empty()) add_mistake("the job does not end");
}

bool ScheduledJob::step() {
  const std::size_t tasks = is_large_ ? workers_.size() * servers_.size() : 1;
  if (disturbances_left_ > 0 && chance_.one_in(60 * tasks)) disturb();
  if (chance_.one_in(50 * tasks)) coordinator_->request_snapshot();
  deliver_outgoing();
  Choices can = choices();
  if (can.empty() && !coordinator_->is_over()) {
    // When no event is possible, only a timeout can make progress possible.
    coordinator_->on_reconnect_timeout();
    deliver_outgoing();
    can = choices();
  }
  if (can.empty() && !coordinator_->is_over()) {
    if (!coordinator_->missing_tasks()) {
      add_mistake("all tasks wait, and no timeout applies");
      return false;
    }
    coordinator_->on_rendezvous_timeout("within 120 s at h:4000");
    deliver_outgoing();
    can = choices();
  }
  if (can.empty()) return false;
  can[static_cast<std::size_t>(chance_.below(can.size()))]();
  deliver_outgoing();
  return true;
}

ScheduledJob::Choices ScheduledJob::choices() {
  Choices can;
  const int first = first_of(workers_.size());
  for (int i = 0; i < declaration_.workers && !is_enough(can, 0); ++i) {
    const int w = (first + i) % declaration_.workers;
    ScheduledWorker& worker = workers_[static_cast<std::size_t>(w)];
    if (!worker.is_alive) continue;
    if (!worker.sent.empty()) can.emplace_back([this, w] { deliver(w); });
    if (!worker.inbox.empty()) {
      can.emplace_back([&worker] {
        worker.on_message(worker.inbox.front());
        worker.inbox.pop_front();
      });
    }
    if (worker.failure()) continue;
    for (auto& choice : worker.choices()) can.push_back(std::move(choice));
  }
  if (coordinator_->is_over()) return can;
  add_choices_of_servers(can);
  add_choices_of_lost_tasks(can);
  if (!events_.empty()) {
    can.emplace_back([this] {
      const ServerEvent event = events_.front();
      events_.pop_front();
      wire::PushT push;
      push.sequence = event.push.id.sequence;
      push.batches = to_wire(event.push.batches);
      push.loss = static_cast<double>(std::max<std::size_t>(push.batches.size(), 1));
      const PushId& id = event.push.id;
      if (event.kind == ServerEvent::Kind::kApplied) {
        coordinator_->on_push_applied(id.worker, id.incarnation, push, event.version);
      } else {
        coordinator_->on_push_dropped(id.worker, id.incarnation, push);
      }
    });
  }
  return can;
}

void ScheduledJob::add_choices_of_servers(Choices& can) {
  const std::size_t before = can.size();
  const int first = first_of(servers_.size());
  const int servers = static_cast<int>(servers_.size());
  for (int i = 0; i < servers && !is_enough(can, before); ++i) {
    const int s = (first + i) % servers;
    ScheduledServer& server = servers_[static_cast<std::size_t>(s)];
    if (!server.is_alive) continue;
    if (to_send_hello_.contains(s)) can.emplace_back([this, s] { send_hello(s); });
    if (!server.orders.empty()) {
      can.emplace_back([&server] {
        const wire::MessageT order = std::move(server.orders.front());
        server.orders.pop_front();
        server.on_message(order);
      });
    }
    if (!server.replies.empty() && !to_send_hello_.contains(s)) {
      can.emplace_back([this, s, &server] {
        const wire::MessageT reply = std::move(server.replies.front());
        server.replies.pop_front();
        coordinator_->on_message(server_id(s), reply);
      });
    }
    // The coordinator receives all results of server 0's pushes before server 0 finishes a
    // snapshot.
    if (server.has_copied() && (s != 0 || events_.empty())) {
      can.emplace_back([this, s, &server] {
        if (s > 0) return server.finish_snapshot({});
        const auto saved = coordinator_->save(server.copied());
        if (saved) server.finish_snapshot(*saved);  // else Release follows
      });
    }
  }
}

int ScheduledJob::first_of(std::size_t tasks) { return is_large_ ? chance_.below(tasks) : 0; }

void ScheduledJob::add_choices_of_lost_tasks(Choices& can) {
  if (is_large_ && !lost_workers_ && !lost_servers_) return;
  for (const auto& [task, link] : links_) {
    const bool is_worker = task.role == TaskId::Role::kWorker;
    const auto index = static_cast<std::size_t>(task.index);
    const bool is_alive = is_worker ? workers_[index].is_alive : servers_[index].is_alive;
    if (is_alive && link == processes_.at(task)) continue;
    can.emplace_back([this, task = task] {
      links_.erase(task);
      coordinator_->on_task_lost(task, "ended");
    });
  }
  for (int w = 0; w < declaration_.workers; ++w) {
    if (workers_[static_cast<std::size_t>(w)].is_alive || not_restarted_.contains(w)) continue;
    can.emplace_back([this, w] {
      workers_[static_cast<std::size_t>(w)].start();
      processes_[worker_id(w)] = next_process_++;
    });
  }
  for (int s = 0; s < static_cast<int>(servers_.size()); ++s) {
    if (servers_[static_cast<std::size_t>(s)].is_alive) continue;
    can.emplace_back([this, s] {
      servers_[static_cast<std::size_t>(s)].restart();
      processes_[server_id(s)] = next_process_++;
      to_send_hello_.insert(s);
    });
  }
}

void ScheduledJob::send_hello(int server) {
  to_send_hello_.erase(server);
  wire::HelloT hello = servers_[static_cast<std::size_t>(server)].make_hello();
  hello.world_size = declaration_.workers;
  hello.num_servers = static_cast<int>(servers_.size());
  const auto answered = coordinator_->on_hello(hello);
  if (!answered.task) {
    if (!has_ended_) add_mistake("refused: " + answered.answer.body.AsRefused()->line);
    return;
  }
  links_[server_id(server)] = processes_[server_id(server)];
}

void ScheduledJob::deliver(int index) {
  ScheduledWorker& worker = workers_[static_cast<std::size_t>(index)];
  const wire::MessageT message = std::move(worker.sent.front());
  worker.sent.pop_front();
  const TaskId task = worker_id(index);
  if (message.body.type == wire::Body::Hello) {
    const auto answered = coordinator_->on_hello(*message.body.AsHello());
    if (answered.task) {
      links_[task] = processes_[task];
    } else {
      worker.on_message(answered.answer);
    }
  } else if (links_.contains(task) && links_[task] == processes_[task]) {
    coordinator_->on_message(task, message);
  }
}

void ScheduledJob::deliver_outgoing() {
  for (Outgoing& outgoing : coordinator_->take_outgoing()) {
    const TaskId& to = outgoing.to;
    const auto index = static_cast<std::size_t>(to.index);
    if (outgoing.message.body.type == wire::Body::Assignment) {
      check_assignment(*outgoing.message.body.AsAssignment());
    }
    has_ended_ = has_ended_ || outgoing.message.body.type == wire::Body::Finished;
    if (!links_.contains(to) || links_[to] != processes_[to]) continue;  // the receiver is dead
    if (to.role == TaskId::Role::kServer) {
      if (servers_[index].is_alive) servers_[index].orders.push_back(std::move(outgoing.message));
    } else if (workers_[index].is_alive) {
      workers_[index].inbox.push_back(std::move(outgoing.message));
    }
  }
  for (int s = 0; s < static_cast<int>(servers_.size()); ++s) {
    for (const ServerEvent& event : servers_[static_cast<std::size_t>(s)].take_ended_steps()) {
      const auto index = static_cast<std::size_t>(event.push.id.worker);
      if (event.kind == ServerEvent::Kind::kAnswered) {
        workers_[index].answered(s, event.push);
      } else if (s == 0) {
        events_.push_back(event);
      }
    }
  }
}

}  // namespace syncopate::ps
