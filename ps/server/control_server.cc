#include "ps/server/control_server.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "models/base/errors.h"
#include "models/base/secret.h"
#include "ps/coordinator/reconnect_timeout.h"
#include "ps/coordinator/refusals.h"
#include "ps/coordinator/wire_conversion.h"
#include "ps/net/endpoint.h"
#include "ps/net/process_probe.h"

namespace syncopate::ps {
namespace {

using std::chrono::milliseconds;

// The time that tasks have to end after the job has ended. The server does not wait longer for a
// task: it is suspended or does not belong to the job.
constexpr milliseconds kFinalTimeout(1000);
constexpr milliseconds kFinalInterval(50);

CoordinatorOptions coordinator_options(const ServerOptions& options) {
  return {.nonce = options.nonce,
          .servers = options.servers,
          .peer_timeout_ms = options.peer_timeout.count(),
          .process = process_name(getpid()),
          .writes_snapshots = !options.snapshot_dir.empty(),
          .life = count_starts(options.snapshot_dir, options.nonce),
          .workers_return = options.workers_return,
          .late_workers = options.late_workers};
}

}  // namespace

ControlServer::ControlServer(ServerOptions& options, DataService& data, ServerDuties& duties,
                             const std::function<bool()>& stop,
                             std::function<void(const std::string&)> note)
    : options_(options),
      data_(data),
      duties_(duties),
      note_(std::move(note)),
      socket_(options, data, duties, stop, note_),
      coordinator_(coordinator_options(options)),
      rendezvous_ends_(Deadline::after(options.rendezvous_timeout)) {
  for (const std::vector<std::byte>& saved : duties.job_snapshots()) {
    coordinator_.restore(saved);
    reconnect_by_ = Deadline::after(options.peer_timeout);
  }
  if (reconnect_by_) note_("continues the job from its snapshots");
  // The data thread posts the ended steps of a copy before the copy. Once these are reported, the
  // coordinator counts exactly the batches that are in the copied values.
  duties.set_save_job([this](std::uint64_t snapshot) {
    report_ended_steps();
    return coordinator_.save(snapshot);
  });
  coordinator_.on_hello(duties.hello());
  exchange_messages();
}

void ControlServer::run() {
  try {
    serve();
  } catch (const std::exception& error) {
    // The other tasks are sent the reason before server 0 ends. Reporting the server as lost a
    // second time means that it will not reconnect.
    const TaskId own{TaskId::Role::kServer, 0};
    coordinator_.on_task_lost(own, error.what());
    coordinator_.on_task_lost(own, error.what());
    send_final_messages();
    throw;
  }
  send_final_messages();
  if (coordinator_.failure()) throw PeerError(*coordinator_.failure());
}

void ControlServer::serve() {
  while (!coordinator_.is_over()) {
    if (socket_.wait() > milliseconds(0)) extend_deadlines();
    run_once();
    if (duties_.failure()) throw PeerError(*duties_.failure());
    if (coordinator_.is_over()) continue;
    socket_.check_stop(coordinator_.has_started(), coordinator_.live_workers() > 0);
  }
}

// A task ends when it has received the final message, and closing this socket discards messages
// that were not read. So the message is sent repeatedly until sending fails, which shows that the
// connection has ended.
void ControlServer::send_final_messages() {
  // When variables are lost, the snapshots are removed: a restarted server 0 that found snapshots
  // would continue the job, and wait for the lost variables again.
  if (coordinator_.has_lost_variables()) duties_.drop_snapshots();
  exchange_messages();
  for (const auto& [task, connection] : connections_)
    final_messages_.emplace(connection.peer, final_message());
  const auto stopped_by = stop_kind_from_wire(coordinator_.status().stopped_by);
  const bool is_complete =
      !coordinator_.failure() && stopped_by.value_or(StopKind::kComplete) == StopKind::kComplete;
  if (is_complete) {
    wire::RefusedT over;
    over.line = "this worker was suspended or disconnected, and the job was completed without it";
    over.is_over = true;
    for (const std::string& peer : lost_workers_) {
      final_messages_.emplace(peer, wire::make_message(wire::RefusedT(over)));
    }
  }
  const Deadline end = Deadline::after(kFinalTimeout);
  Deadline next_send = Deadline::after(kFinalInterval);
  while (!end.passed() && !final_messages_.empty()) {
    socket_.wait_for_messages();
    socket_->flush();
    while (const auto message = socket_->receive()) on_final_message(*message);
    if (!next_send.passed()) continue;
    next_send = Deadline::after(kFinalInterval);
    std::erase_if(final_messages_, [this](const auto& entry) {
      return !socket_->send(wire::envelope(entry.first, entry.second));
    });
  }
}

wire::MessageT ControlServer::final_message() const {
  if (!coordinator_.failure()) return wire::make_message(wire::FinishedT{});
  wire::FailingT failing;
  failing.reason = *coordinator_.failure();
  return wire::make_message(std::move(failing));
}

void ControlServer::on_final_message(const wire::Received& message) {
  const wire::BodyUnion& body = message.header.body;
  if (body.type == wire::Body::Hello) {
    const wire::HelloT& hello = *body.AsHello();
    if (!message.is_of_job) {
      socket_->send(wire::envelope(message.peer, make_message(refuse_other_job(hello))));
      return;
    }
    // A task that reconnects receives the final message over the new connection; a new task is
    // refused.
    const TaskId task{hello.role == 1 ? TaskId::Role::kServer : TaskId::Role::kWorker, hello.index};
    const bool is_known = connections_.contains(task) &&
                          (task.role == TaskId::Role::kServer || hello.incarnation != 0);
    final_messages_.insert_or_assign(
        message.peer, is_known ? final_message() : coordinator_.on_hello(hello).answer);
    if (is_known) tasks_[message.peer] = task;
    return;
  }
  const auto task = tasks_.find(message.peer);
  const bool has_left = body.type == wire::Body::Leaving && task != tasks_.end() &&
                        task->second.role == TaskId::Role::kServer;
  if (has_left || body.type == wire::Body::Failing) final_messages_.erase(message.peer);
}

void ControlServer::run_once() {
  for (bool busy = true; busy;) {
    busy = false;
    if (auto message = socket_->receive()) {
      busy = true;
      on_message(*message);
    }
    socket_->flush();
  }
  report_ended_steps();
  check_deadlines();
  exchange_messages();
}

void ControlServer::report_ended_steps() {
  for (const EndedStep& step : data_.take_ended_steps()) {
    if (step.is_applied) {
      coordinator_.on_push_applied(step.worker, step.incarnation, step.push, step.version);
    } else {
      coordinator_.on_push_dropped(step.worker, step.incarnation, step.push);
    }
  }
}

void ControlServer::on_message(wire::Received& message) {
  const wire::BodyUnion& body = message.header.body;
  // A step of a task that is given up now counts if it ended before.
  if (body.type == wire::Body::Hello || body.type == wire::Body::Failing) report_ended_steps();
  if (body.type == wire::Body::Hello) {
    const wire::HelloT& hello = *body.AsHello();
    if (!message.is_of_job) {
      ++stranger_messages_;
      socket_->log_dropped(message, fmt::format("a Hello of another job: {}", kOtherNonce));
      socket_->send(wire::envelope(message.peer, make_message(refuse_other_job(hello))));
      return;
    }
    return on_hello(message.peer, hello);
  }
  const auto task = tasks_.find(message.peer);
  const bool is_heartbeat = body.type == wire::Body::Heartbeat;
  if (task == tasks_.end() && is_heartbeat && undeclared_.contains(message.peer)) return;
  if (task == tasks_.end()) {
    ++stranger_messages_;
    socket_->log_dropped(message,
                         fmt::format("a {} of no task of this job, or of one that was given up",
                                     wire::name_of(message.header)));
    wire::RefusedT refused;
    refused.line =
        "this task sent nothing for longer than the peer timeout; the job continued without it";
    socket_->send(wire::envelope(message.peer, make_message(std::move(refused))));
    return;
  }
  if (is_heartbeat) return;  // read before the task was watched
  const TaskId from = task->second;
  const std::string name = describe(from, connections_.at(from));
  coordinator_.on_message(from, message.header);
  if (body.type == wire::Body::Failing && from.role == TaskId::Role::kServer &&
      !options_.servers_return) {
    coordinator_.on_task_lost(from, name + " failed: " + body.AsFailing()->reason);
  }
  if (body.type == wire::Body::Failing) {
    // A task that sent Failing sends no more, and its timeout would be reported as a second loss.
    disconnect(from);
  }
  exchange_messages();
}

void ControlServer::on_hello(const std::string& peer, const wire::HelloT& hello) {
  if (hello.role == 1 && hello.index == 0) {
    wire::RefusedT refused;
    refused.line = fmt::format(
        "another process (host {}, pid {}) registers as server 0, which is "
        "running already; give each server its own index",
        hello.host, hello.pid);
    refused.is_usage_error = true;
    socket_->send(wire::envelope(peer, make_message(std::move(refused))));
    return;
  }
  if (const auto replaced = replaced_.find(peer); replaced != replaced_.end()) {
    socket_->send(wire::envelope(peer, make_message(wire::RefusedT(replaced->second))));
    return;
  }
  const Coordinator::HelloAnswer decision = coordinator_.on_hello(hello);
  undeclared_.erase(peer);
  if (!decision.task) {
    if (decision.answer.body.type == wire::Body::DeclarationRequest) undeclared_.insert(peer);
    socket_->send(wire::envelope(peer, decision.answer));
    if (coordinator_.is_over()) final_messages_.emplace(peer, decision.answer);
    return exchange_messages();
  }
  const auto old = connections_.find(*decision.task);
  if (old != connections_.end()) {
    tasks_.erase(old->second.peer);
    socket_->forget(old->second.peer);
    const bool is_same = hello.incarnation != 0 || old->second.peer == peer;
    if (!is_same) refuse_replaced(old->second.peer, ps::describe(*decision.task), hello);
  }
  connections_.insert_or_assign(*decision.task, Connection{.peer = peer,
                                                           .incarnation = decision.incarnation,
                                                           .ready_by = std::nullopt,
                                                           .host = hello.host,
                                                           .pid = hello.pid});
  tasks_[peer] = *decision.task;
  socket_->watch(peer, options_.peer_timeout * 7 / 10, hello.process);
  exchange_messages();
}

void ControlServer::disconnect(const TaskId& task) {
  const std::string peer = connections_.at(task).peer;
  socket_->forget(peer);
  tasks_.erase(peer);
  connections_.erase(task);
}

void ControlServer::refuse_replaced(const std::string& peer, const std::string& name,
                                    const wire::HelloT& new_task) {
  wire::RefusedT refused;
  refused.line = fmt::format(
      "another process (host {}, pid {}) has replaced this one as {}; give "
      "each task its own index",
      new_task.host, new_task.pid, name);
  refused.is_usage_error = true;
  socket_->send(wire::envelope(peer, make_message(wire::RefusedT(refused))));
  replaced_.insert_or_assign(peer, std::move(refused));
}

void ControlServer::exchange_messages() {
  const TaskId own{TaskId::Role::kServer, 0};
  for (bool busy = true; busy;) {
    busy = false;
    for (const wire::MessageT& reply : duties_.take_replies()) {
      busy = true;
      report_ended_steps();  // the steps in a snapshot, before its SnapshotDone
      coordinator_.on_message(own, reply);
    }
    for (const Outgoing& outgoing : coordinator_.take_outgoing()) {
      busy = true;
      if (outgoing.to == own) {
        duties_.on_message(outgoing.message);
      } else {
        send(outgoing);
      }
    }
  }
}

void ControlServer::send(const Outgoing& outgoing) {
  const auto found = connections_.find(outgoing.to);
  if (found == connections_.end()) return;
  if (outgoing.incarnation != 0) found->second.incarnation = outgoing.incarnation;
  socket_->send(wire::envelope(found->second.peer, outgoing.message));
}

std::string ControlServer::describe(const TaskId& task, const Connection& connection) const {
  return fmt::format("{} (host {}, pid {})", ps::describe(task), connection.host, connection.pid);
}

void ControlServer::check_connections() {
  const std::vector<int> joining = coordinator_.joining_workers();
  std::vector<std::pair<TaskId, std::string>> lost;
  for (auto& [task, connection] : connections_) {
    const bool joins = task.role == TaskId::Role::kWorker &&
                       std::ranges::find(joining, task.index) != joining.end();
    if (!joins) {
      connection.ready_by.reset();
    } else if (!connection.ready_by) {
      connection.ready_by = Deadline::after(options_.join_timeout);
    } else if (connection.ready_by->passed()) {
      lost.emplace_back(task,
                        fmt::format("{} was admitted, and was not ready within {}",
                                    describe(task, connection), in_seconds(options_.join_timeout)));
      continue;
    }
  }
  for (const auto& [peer, silence] : socket_->lost()) {
    const auto found = tasks_.find(peer);
    // A worker that has left is silent while the job waits for the others.
    if (found == tasks_.end() || coordinator_.has_left(found->second)) continue;
    const TaskId& task = found->second;
    const bool is_worker = task.role == TaskId::Role::kWorker;
    const std::int64_t step = is_worker ? socket_->step(peer) : coordinator_.status().step;
    lost.emplace_back(task,
                      fmt::format("{} {}; last at step {}", describe(task, connections_.at(task)),
                                  syncopate::describe(silence), step));
  }
  for (const auto& [task, reason] : lost) {
    const auto connection = connections_.find(task);
    if (connection == connections_.end()) continue;  // lost for two reasons
    if (task.role == TaskId::Role::kWorker) lost_workers_.insert(connection->second.peer);
    disconnect(task);
    coordinator_.on_task_lost(task, reason);
    if (task.role == TaskId::Role::kServer && !options_.servers_return) {
      coordinator_.on_task_lost(task, reason);
    }
    if (coordinator_.failure()) continue;  // reported by the exception of run()
    const int left = coordinator_.live_workers();
    const bool goes_on =
        task.role == TaskId::Role::kWorker && coordinator_.has_started() && left > 0;
    note_(goes_on ? fmt::format("{}; the job goes on with {} worker{}, which also train{} its "
                                "batches",
                                reason, left, left == 1 ? "" : "s", left == 1 ? "s" : "")
                  : reason);
  }
}

void ControlServer::check_deadlines() {
  if (!coordinator_.has_started() && rendezvous_ends_.passed()) {
    coordinator_.on_rendezvous_timeout("within " + in_seconds(rendezvous_ends_.timeout()) + " at " +
                                       to_string(options_.rendezvous));
  }
  if (reconnect_by_ && reconnect_by_->passed()) {
    reconnect_by_.reset();
    coordinator_.on_reconnect_timeout();
  }
  check_connections();
  const auto missing = coordinator_.has_started() ? coordinator_.missing_tasks() : std::nullopt;
  if (!missing || coordinator_.is_over()) {
    missing_until_.reset();
  } else if (!missing_until_) {
    missing_until_ = Deadline::after(options_.worker_timeout);
  } else if (missing_until_->passed()) {
    throw PeerError(fmt::format("{} did not reconnect within {}{}", *missing,
                                in_seconds(missing_until_->timeout()),
                                resume_advice(!options_.snapshot_dir.empty())));
  }
  if (!options_.snapshot_dir.empty() && coordinator_.has_started()) {
    // The first snapshot of a job is made at once: without one, a server's loss ends the job.
    if (!next_snapshot_) next_snapshot_ = Deadline::after(milliseconds(0));
    if (next_snapshot_->passed()) {
      coordinator_.request_snapshot();
      next_snapshot_ = Deadline::after(options_.snapshot_interval);
    }
  }
  if (!socket_.is_status_due()) return;
  const StalenessTotals staleness = duties_.staleness();
  coordinator_.set_staleness(staleness.mean(), staleness.max);
  socket_.set_step(coordinator_.status().step);
}

void ControlServer::extend_deadlines() {
  for (auto& [task, connection] : connections_) {
    connection.ready_by.reset();
  }
}

}  // namespace syncopate::ps
