#include "ps/server/data_service.h"

#include <fmt/format.h>
#include <poll.h>
#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "models/base/secret.h"
#include "ps/coordinator/wire_conversion.h"
#include "ps/net/endpoint.h"

namespace syncopate::ps {
namespace {

constexpr std::chrono::milliseconds kSendInterval(100);
constexpr std::chrono::milliseconds kLongestPoll = std::chrono::hours(1);

}  // namespace

DataService::DataService(const DataServiceOptions& options)
    : options_(options),
      sessions_(options.workers, options.index),
      snapshots_(sessions_),
      mapper_(options.nonce, options.segment_timeout) {
  open_socket();
  requests_ = std::make_unique<RequestService>(RequestServiceOptions{.index = options.index,
                                                                     .servers = options.servers,
                                                                     .threads = options.threads,
                                                                     .record = options.record},
                                               *socket_, sessions_, snapshots_, queue_, results_);
  thread_ = std::jthread([this](const std::stop_token& stop) {
    try {
      run(stop);
    } catch (const std::exception& error) {
      results_.fail(error.what());
    }
  });
  pthread_setname_np(thread_.native_handle(), "ps-data");
}

DataService::~DataService() {
  thread_.request_stop();
  queue_.wake();
  thread_.join();
}

void DataService::open_socket() {
  const wire::SocketLimits limits = wire::limits_for_tasks(options_.workers, options_.nonce);
  if (options_.link.is_plain()) {
    socket_ =
        wire::Socket::listen(context_, listening_endpoint(options_.host, options_.port), limits);
    port_ = socket_->port();
    return;
  }
  Listener listener(listening_endpoint(options_.host, options_.port));
  socket_ = wire::Socket::listen(context_, Endpoint{loopback_address(), 0}, limits);
  forwarder_ = std::make_unique<LinkForwarder>(std::move(listener), socket_->port(), options_.link);
  port_ = forwarder_->port();
}

void DataService::serve(std::shared_ptr<ServedVariables> served, std::uint32_t incarnation) {
  queue_.post([this, served = std::move(served), incarnation] {
    served_ = served;
    sessions_.clear();
    snapshots_.abandon();
    requests_->serve(served, incarnation);
  });
}

void DataService::remove_worker(WorkerId worker, std::uint32_t incarnation) {
  queue_.post([this, worker, incarnation] {
    const auto ended = sessions_.remove(worker, incarnation);
    if (!ended) return;
    results_.add_departed({worker, *ended, served_->shard->leave(worker, *ended)});
    snapshots_.statistics().forget(worker);
    requests_->schedule_all();
  });
}

void DataService::schedule_all() {
  queue_.post([this] {
    if (served_ != nullptr) requests_->schedule_all();
  });
}

void DataService::begin_snapshot(std::shared_ptr<ServedSnapshot> snapshot) {
  queue_.post([this, snapshot = std::move(snapshot)] {
    requests_->finish(snapshots_.begin(snapshot, *served_));
    requests_->schedule_all();
  });
}

void DataService::publish(std::shared_ptr<const ServedSnapshot> snapshot) {
  queue_.post([this, snapshot = std::move(snapshot)] { snapshots_.publish(snapshot); });
}

void DataService::set_running_statistics(std::vector<float> values) {
  queue_.post(
      [this, values = std::move(values)] { snapshots_.statistics() = RunningStatistics(values); });
}

std::int64_t DataService::credit_of(const WorkerSession& session) const {
  const std::int64_t share =
      std::max<std::int64_t>(1, options_.credit_bytes / std::max(1, options_.workers));
  if (session.segment != nullptr) return share;
  // With one message under way per worker, no worker of a synchronous job sends while it receives,
  // and a link is busy in one direction at a time.
  std::int64_t largest = 0;
  for (const Bucket& bucket : served_->shard->buckets()) {
    largest = std::max(largest, bucket.end - bucket.begin);
  }
  return std::max(share, 2 * largest * bytes_per_value(values_format(served_->declaration)));
}

int DataService::poll_timeout() const {
  using Milliseconds = std::chrono::milliseconds;
  // Messages queued for a slow worker are sent when its socket becomes writable, which not every
  // descriptor reports.
  std::optional<Milliseconds> longest;
  if (socket_->queued_bytes() > 0) longest = kSendInterval;
  if (const auto wait = requests_->time_to_deadline()) {
    // The time is rounded up: a call that comes too early would be repeated at once.
    const auto rounded = std::chrono::ceil<Milliseconds>(*wait);
    longest = std::clamp(rounded, Milliseconds(0), longest.value_or(kLongestPoll));
  }
  return longest ? static_cast<int>(longest->count()) : -1;
}

void DataService::run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    std::vector<pollfd> polled{{queue_.descriptor(), POLLIN, 0}};
    for (const int descriptor : socket_->descriptors()) polled.push_back({descriptor, POLLIN, 0});
    poll(polled.data(), polled.size(), poll_timeout());
    run_posted(polled.front().revents != 0);
    requests_->update_due();
    while (auto message = socket_->receive()) {
      on_message(*message);
      run_posted(false);
      if (socket_->queued_bytes() > 0) socket_->flush();
    }
    socket_->flush();
    foreign_messages_ = socket_->foreign_messages();
    callers_without_greeting_ = socket_->callers_without_greeting();
  }
}

void DataService::run_posted(bool is_readable) {
  if (is_readable || queue_.is_awake()) {
    const auto tasks = queue_.take();
    requests_->take_events();
    for (const auto& task : tasks) task();
  }
  requests_->release_retired();
}

void DataService::on_message(wire::Received& message) {
  const wire::BodyUnion& body = message.header.body;
  if (body.type == wire::Body::DataHello) return on_hello(message, *body.AsDataHello());
  WorkerSession* const session = sessions_.find(message.peer, message.header.session);
  if (session == nullptr && sessions_.has_ended(message.peer)) return;
  if (session == nullptr) {
    ++stranger_messages_;
    return socket_->log_dropped(
        message, fmt::format("a {} of no session of this job, or of one that has ended",
                             wire::name_of(message.header)));
  }
  switch (body.type) {
    case wire::Body::Push:
      return requests_->push(*session, message, *body.AsPush());
    case wire::Body::Pull:
      return requests_->pull(*session, *body.AsPull());
    case wire::Body::Probe:
      return requests_->probe(*session, *body.AsProbe());
    case wire::Body::Write:
      return requests_->write(*session, message, *body.AsWrite());
    case wire::Body::ReadSnapshot:
      if (auto answer = snapshots_.read(*session, *body.AsReadSnapshot(), *served_)) {
        socket_->send(std::move(*answer));
      }
      return;
    default:
      return;  // not a message of a worker to a shard
  }
}

void DataService::on_hello(wire::Received& message, const wire::DataHelloT& hello) {
  const std::string& peer = message.peer;
  if (!message.is_of_job) {
    ++stranger_messages_;
    socket_->log_dropped(message, fmt::format("a DataHello of another job: {}", kOtherNonce));
    wire::RefusedT refused;
    refused.line = fmt::format("it serves another job: {}", kOtherNonce);
    socket_->send(wire::envelope(peer, wire::make_message(std::move(refused))));
    return;
  }
  WorkerSessions::HelloResult result = sessions_.on_hello(peer, hello, served_.get());
  if (result.refusal) {
    socket_->send(wire::envelope(peer, wire::make_message(std::move(*result.refusal))));
  }
  if (result.session == nullptr) return;
  if (result.is_new) {
    snapshots_.statistics().forget(hello.worker);
    std::vector<BucketId> ahead;
    for (const int bucket : hello.ahead) {
      if (bucket < 0 || std::cmp_greater_equal(bucket, served_->shard_bucket.size())) continue;
      ahead.push_back(served_->shard_bucket[static_cast<std::size_t>(bucket)]);
    }
    served_->shard->join(hello.worker, hello.incarnation, hello.sequence, ahead);
    requests_->schedule_all();
  }
  if (!begin_mapping(*result.session, hello)) send_welcome(*result.session);
}

bool DataService::begin_mapping(WorkerSession& session, const wire::DataHelloT& hello) {
  if (session.is_mapping) return true;
  if (!options_.uses_segments || hello.segment.empty() || session.segment != nullptr) return false;
  if (session.mapped_by_call == hello.call) return false;  // this Hello is repeated
  session.is_mapping = true;
  session.mapped_by_call = hello.call;
  std::int64_t total = 0;
  for (const wire::BucketPlace& place : served_->declaration.buckets) {
    total = std::max(total, place.end());
  }
  const auto on_mapped = [this, worker = session.worker, incarnation = session.incarnation](
                             std::shared_ptr<const MappedSegment> segment) {
    queue_.post([this, worker, incarnation, segment = std::move(segment)]() mutable {
      this->on_mapped(worker, incarnation, std::move(segment));
    });
  };
  const std::span<const Bucket> buckets = served_->shard->buckets();
  mapper_.map({.segment = hello.segment,
               .elements = total,
               .buckets = {buckets.begin(), buckets.end()},
               .worker = fmt::format("worker {}", session.worker),
               .on_mapped = on_mapped});
  return true;
}

void DataService::on_mapped(WorkerId worker, std::uint32_t incarnation,
                            std::shared_ptr<const MappedSegment> segment) {
  WorkerSession* const session = sessions_.find(worker, incarnation);
  if (session == nullptr || !session->is_mapping) return;
  session->is_mapping = false;
  session->segment = std::move(segment);
  send_welcome(*session);
}

void DataService::send_welcome(const WorkerSession& session) {
  wire::DataWelcomeT welcome;
  welcome.incarnation = requests_->incarnation();
  welcome.credit_bytes = credit_of(session);
  welcome.uses_segment = session.segment != nullptr;
  welcome.session = session.token;
  socket_->send(wire::envelope(session.peer, wire::make_message(welcome)));
}

}  // namespace syncopate::ps
