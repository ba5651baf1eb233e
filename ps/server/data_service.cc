#include "ps/server/data_service.h"

#include <poll.h>
#include <pthread.h>

#include <algorithm>
#include <utility>

#include "ps/net/endpoint.h"

namespace syncopate::ps {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kTick(100);

}  // namespace

DataService::DataService(const DataServiceOptions& options) : options_(options) {
  if (options.link.is_plain()) {
    socket_ = wire::Socket::listen(context_, listening_endpoint(options.host, options.port));
    port_ = socket_->port();
  } else {
    Listener known(listening_endpoint(options.host, options.port));
    socket_ = wire::Socket::listen(context_, Endpoint{"127.0.0.1", 0});
    forwarder_ = std::make_unique<LinkForwarder>(std::move(known), socket_->port(), options.link);
    port_ = forwarder_->port();
  }
  updates_ = std::make_unique<UpdateThreads>(
      options.threads,
      [this](const Shard& shard, std::vector<ShardEvent>& events) {
        {
          const std::lock_guard lock(mutex_);
          for (const ShardEvent& event : events) events_.emplace_back(&shard, event);
        }
        wake_.notify();
      },
      [this](const std::exception& error) { fail(error); });
  thread_ = std::jthread([this](const std::stop_token& stop) {
    try {
      run(stop);
    } catch (const std::exception& error) {
      fail(error);
    }
  });
  pthread_setname_np(thread_.native_handle(), "ps-data");
}

DataService::~DataService() {
  thread_.request_stop();
  wake_.notify();
  thread_.join();
  updates_.reset();
}

void DataService::fail(const std::exception& error) {
  {
    const std::lock_guard lock(mutex_);
    failure_ = error.what();
  }
  news_event_.notify();
}

void DataService::serve(std::shared_ptr<ServedVariables> served, std::uint32_t incarnation) {
  const std::lock_guard lock(mutex_);
  tasks_.emplace_back([this, served = std::move(served), incarnation] {
    if (served_ != nullptr) retired_.push_back({std::move(served_), std::move(open_)});
    served_ = served;
    incarnation_ = incarnation;
    sessions_.clear();
    workers_by_peer_.clear();
    open_.clear();
    sums_.clear();
    event_order_.clear();
    expected_cut_.reset();
    if (!options_.record.empty()) {
      record_ = std::make_unique<ServiceRecord>(options_.record, options_.index, options_.servers,
                                                incarnation_, *served_);
    }
  });
  wake_.notify();
}

void DataService::forget(WorkerId worker, std::uint32_t incarnation) {
  const std::lock_guard lock(mutex_);
  tasks_.emplace_back([this, worker, incarnation] {
    std::uint32_t& last = forgotten_[worker];
    last = std::max(last, incarnation);
    const auto session = sessions_.find(worker);
    if (session == sessions_.end() || session->second.incarnation > incarnation) return;
    served_->shard->leave(worker, session->second.incarnation);
    end_session(worker);
    statistics_.forget(worker);
    schedule_all();
  });
  wake_.notify();
}

void DataService::end_session(WorkerId worker) {
  std::erase_if(workers_by_peer_, [&](const auto& entry) { return entry.second == worker; });
  sessions_.erase(worker);
}

void DataService::look_again() {
  const std::lock_guard lock(mutex_);
  tasks_.emplace_back([this] {
    if (served_ == nullptr) return;
    schedule_all();
  });
  wake_.notify();
}

void DataService::expect_cut(std::shared_ptr<CutCopy> copy) {
  const std::lock_guard lock(mutex_);
  tasks_.emplace_back([this, copy = std::move(copy)] {
    expected_cut_ = copy;
    cut_buckets_left_ = static_cast<int>(served_->job_bucket.size());
    if (cut_buckets_left_ == 0) {
      ++cut_buckets_left_;
      finish_cut_bucket(copy->cut);
      return;
    }
    served_->shard->begin_snapshot(copy->cut, copy->entries, {copy, &copy->state});
    schedule_all();
  });
  wake_.notify();
}

void DataService::publish(std::shared_ptr<const CutCopy> copy) {
  const std::lock_guard lock(mutex_);
  tasks_.emplace_back([this, copy = std::move(copy)] { published_ = copy; });
  wake_.notify();
}

void DataService::set_running_statistics(std::vector<float> values) {
  const std::lock_guard lock(mutex_);
  tasks_.emplace_back(
      [this, values = std::move(values)] { statistics_ = RunningStatistics(values); });
  wake_.notify();
}

std::vector<StepNews> DataService::take_news() {
  news_event_.clear();
  const std::lock_guard lock(mutex_);
  return std::exchange(news_, {});
}

std::shared_ptr<CutCopy> DataService::finished_cut() {
  const std::lock_guard lock(mutex_);
  return std::exchange(finished_cut_, nullptr);
}

std::optional<std::string> DataService::failure() {
  const std::lock_guard lock(mutex_);
  return failure_;
}

void DataService::run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    std::vector<pollfd> polled{{wake_.descriptor(), POLLIN, 0}};
    for (const int descriptor : socket_->descriptors()) polled.push_back({descriptor, POLLIN, 0});
    // What waits to be sent to a slow worker goes on when the socket says so, or now and then.
    poll(polled.data(), polled.size(),
         socket_->queued_bytes() > 0 ? static_cast<int>(kTick.count()) : -1);
    for (bool busy = true; busy;) {
      do_tasks();
      busy = false;
      if (auto envelope = socket_->receive()) {
        busy = true;
        hear(*envelope);
      }
      socket_->flush();
    }
    foreign_messages_ = socket_->foreign_messages();
  }
}

void DataService::do_tasks() {
  wake_.clear();
  std::vector<std::function<void()>> tasks;
  std::vector<std::pair<const Shard*, ShardEvent>> events;
  {
    const std::lock_guard lock(mutex_);
    tasks.swap(tasks_);
    events.swap(events_);
  }
  std::vector<ShardEvent> ordered;
  for (const auto& [shard, event] : events) {
    // Threads may still have been at work on the shard that a restart has replaced.
    if (served_ != nullptr && shard == served_->shard.get()) put_in_order(event, ordered);
  }
  if (!ordered.empty()) take_events(ordered);
  for (const auto& task : tasks) task();
  if (!retired_.empty()) let_go_of_retired();
}

// A thread at work on a shard holds it.
void DataService::let_go_of_retired() {
  std::erase_if(retired_, [](const Retired& one) { return one.served->shard.use_count() == 1; });
}

}  // namespace syncopate::ps
