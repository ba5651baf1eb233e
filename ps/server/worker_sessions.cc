#include "ps/server/worker_sessions.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "models/base/errors.h"
#include "models/base/log.h"
#include "models/base/secret.h"

namespace syncopate::ps {
namespace {

WorkerSessions::HelloResult refuse_hello(std::string line, bool is_usage_error) {
  wire::RefusedT refused;
  refused.line = std::move(line);
  refused.is_usage_error = is_usage_error;
  return {.refusal = std::move(refused)};
}

}  // namespace

WorkerSessions::WorkerSessions(int workers, int shard) : workers_(workers), shard_(shard) {}

WorkerSessions::HelloResult WorkerSessions::on_hello(const std::string& peer,
                                                     const wire::DataHelloT& hello,
                                                     const ServedVariables* served) {
  if (hello.shard != shard_) {
    return refuse_hello(fmt::format("it is server {}, and worker {} called server {}", shard_,
                                    hello.worker, hello.shard),
                        false);
  }
  // No declaration has reached the server yet, or it was restarted: the worker will greet again.
  if (served == nullptr) return {};
  if (hello.worker < 0 || hello.worker >= workers_) return {};
  if (hello.fingerprint != 0 && hello.fingerprint != served->fingerprint) {
    return refuse_hello(
        fmt::format(
            "it serves another network than worker {} trains; start all tasks with the same "
            "program and flags",
            hello.worker),
        true);
  }
  // A worker's greeting may have been in transit for longer than the peer timeout.
  if (hello.incarnation <= removed_[hello.worker]) {
    return refuse_hello(
        fmt::format(
            "worker {} sent nothing for longer than the peer timeout, and the job continued "
            "without it",
            hello.worker),
        false);
  }
  const auto known = sessions_.find(hello.worker);
  if (known != sessions_.end() && known->second.incarnation > hello.incarnation) {
    return refuse_hello(
        fmt::format("a later incarnation of worker {} has replaced this one", hello.worker), false);
  }
  // A late greeting came over a socket that the worker has closed: no answer would arrive there.
  if (known != sessions_.end() && known->second.incarnation == hello.incarnation &&
      known->second.call > hello.call) {
    return {};
  }
  const bool is_new = known == sessions_.end() || known->second.incarnation < hello.incarnation;
  if (is_new) end(hello.worker);
  WorkerSession& session = sessions_[hello.worker];
  session.worker = hello.worker;
  session.incarnation = hello.incarnation;
  session.call = hello.call;
  session.last_push = std::max(session.last_push, hello.sequence);
  forget_connection(hello.worker);
  ended_peers_.erase(peer);
  // A repeated greeting over one connection gets the same token: the worker may have used it since.
  if (session.peer != peer) session.token = random_token();
  session.peer = peer;
  workers_by_peer_[peer] = hello.worker;
  return {.session = &session, .is_new = is_new};
}

WorkerSession* WorkerSessions::find(const std::string& peer, std::uint64_t token) {
  const auto worker = workers_by_peer_.find(peer);
  if (worker == workers_by_peer_.end()) return nullptr;
  WorkerSession& session = sessions_.at(worker->second);
  return session.token == token ? &session : nullptr;
}

WorkerSession* WorkerSessions::find_worker(WorkerId worker) {
  const auto session = sessions_.find(worker);
  return session == sessions_.end() ? nullptr : &session->second;
}

WorkerSession* WorkerSessions::find(WorkerId worker, std::uint32_t incarnation) {
  WorkerSession* const session = find_worker(worker);
  return session != nullptr && session->incarnation == incarnation ? session : nullptr;
}

std::optional<std::uint32_t> WorkerSessions::remove(WorkerId worker, std::uint32_t incarnation) {
  std::uint32_t& last = removed_[worker];
  last = std::max(last, incarnation);
  const auto session = sessions_.find(worker);
  if (session == sessions_.end() || session->second.incarnation > incarnation) return std::nullopt;
  const std::uint32_t ended = session->second.incarnation;
  end(worker);
  return ended;
}

void WorkerSessions::clear() {
  for (const auto& [peer, worker] : workers_by_peer_) ended_peers_.insert(peer);
  sessions_.clear();
  workers_by_peer_.clear();
}

void WorkerSessions::end(WorkerId worker) {
  forget_connection(worker);
  sessions_.erase(worker);
}

void WorkerSessions::forget_connection(WorkerId worker) {
  std::erase_if(workers_by_peer_, [&](const auto& entry) {
    if (entry.second != worker) return false;
    ended_peers_.insert(entry.first);
    return true;
  });
}

void WorkerSessions::drop(WorkerSession& session, const char* message, int bucket,
                          const std::string& problem) {
  ++unfit_messages_;
  if (std::exchange(session.has_logged_drop, true)) return;
  log(LogLevel::kWarning,
      fmt::format("dropped a {}{} by worker {}: {}; check that both run the same program", message,
                  bucket < 0 ? "" : fmt::format(" of bucket {}", bucket), session.worker, problem));
}

int WorkerSessions::shard_bucket(WorkerSession& session, const ServedVariables& served,
                                 const char* message, int bucket) {
  const bool is_known = bucket >= 0 && std::cmp_less(bucket, served.shard_bucket.size());
  const int own = is_known ? served.shard_bucket[static_cast<std::size_t>(bucket)] : -1;
  if (own < 0) drop(session, message, bucket, "this shard has no such bucket");
  return own;
}

}  // namespace syncopate::ps
