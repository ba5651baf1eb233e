#include "ps/server/segment_mapper.h"

#include <fmt/format.h>
#include <poll.h>
#include <pthread.h>

#include <algorithm>
#include <utility>

#include "models/base/errors.h"
#include "models/base/log.h"

namespace syncopate::ps {

SegmentMapper::SegmentMapper(std::string nonce, std::chrono::milliseconds timeout)
    : nonce_(std::move(nonce)), timeout_(timeout) {
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
  pthread_setname_np(thread_.native_handle(), "ps-mapper");
}

SegmentMapper::~SegmentMapper() {
  thread_.request_stop();
  requests_.wake();
  thread_.join();
}

void SegmentMapper::map(Request request) { requests_.post(std::move(request)); }

void SegmentMapper::run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    call_workers();
    wait();
    map_answered();
    if (unfilled_.empty()) continue;
    // Until its pages are filled, a bucket costs page faults.
    fill_page_tables(*unfilled_.front().segment, unfilled_.front().part.begin,
                     unfilled_.front().part.end);
    unfilled_.pop_front();
  }
}

void SegmentMapper::call_workers() {
  for (Request& request : requests_.take()) {
    std::optional<SegmentCall> call;
    try {
      call = SegmentCall::begin(request.segment, nonce_, request.elements);
    } catch (const Error& error) {
      log(LogLevel::kWarning,
          fmt::format("the shared memory of {} is not used: {}", request.worker, error.what()));
    }
    if (call) {
      waiting_.push_back({std::move(request), std::move(*call), Deadline::after(timeout_)});
    } else {
      request.on_mapped(nullptr);
    }
  }
}

void SegmentMapper::wait() {
  std::vector<pollfd> sockets = {{requests_.descriptor(), POLLIN, 0}};
  std::optional<Deadline> first;
  for (const Waiting& waiting : waiting_) {
    sockets.push_back({waiting.call.descriptor(), POLLIN, 0});
    if (!first || waiting.deadline.remaining() < first->remaining()) first = waiting.deadline;
  }
  const int until_first = first ? first->remaining_milliseconds() : -1;
  poll(sockets.data(), sockets.size(), unfilled_.empty() ? until_first : 0);
}

void SegmentMapper::map_answered() {
  for (auto waiting = waiting_.begin(); waiting != waiting_.end();) {
    pollfd socket = {waiting->call.descriptor(), POLLIN, 0};
    const bool has_answered = poll(&socket, 1, 0) > 0;
    if (!has_answered && !waiting->deadline.passed()) {
      ++waiting;
      continue;
    }
    std::shared_ptr<const MappedSegment> segment;
    try {
      auto mapped = has_answered ? waiting->call.map() : std::nullopt;
      if (mapped) segment = std::make_shared<const MappedSegment>(std::move(*mapped));
    } catch (const Error& error) {
      log(LogLevel::kWarning, fmt::format("the shared memory of {} is not used: {}",
                                          waiting->request.worker, error.what()));
    }
    waiting->request.on_mapped(segment);
    if (segment != nullptr) {
      for (const Bucket& part : waiting->request.buckets) unfilled_.push_back({segment, part});
    }
    waiting = waiting_.erase(waiting);
  }
}

}  // namespace syncopate::ps
