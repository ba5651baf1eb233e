#include "ps/server/segment_mapper.h"

#include <fmt/format.h>
#include <pthread.h>

#include <chrono>
#include <optional>
#include <utility>

#include "models/base/deadline.h"
#include "models/base/errors.h"
#include "models/base/log.h"

namespace syncopate::ps {
namespace {

// How long a worker may take to send its descriptor. Longer than a worker that competes for the CPU
// needs; without its segment, the worker's values travel in message frames.
constexpr std::chrono::seconds kMapTimeout(5);

}  // namespace

SegmentMapper::SegmentMapper(std::string nonce) : nonce_(std::move(nonce)) {
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
  pthread_setname_np(thread_.native_handle(), "ps-mapper");
}

SegmentMapper::~SegmentMapper() {
  thread_.request_stop();
  thread_.join();
}

void SegmentMapper::map(Request request) {
  {
    const std::lock_guard lock(mutex_);
    requests_.push_back(std::move(request));
  }
  changed_.notify_one();
}

void SegmentMapper::run(const std::stop_token& stop) {
  for (;;) {
    std::optional<Request> request;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, stop, [this] { return !requests_.empty() || !unfilled_.empty(); });
      if (stop.stop_requested()) return;
      if (!requests_.empty()) {
        request = std::move(requests_.front());
        requests_.pop_front();
      }
    }
    if (request) {
      const auto segment = map_now(*request);
      request->on_mapped(segment);
      if (segment == nullptr) continue;
      for (const Bucket& part : request->buckets) unfilled_.push_back({segment, part});
    } else {
      // Waiting requests come first. Until its pages are filled, a bucket costs page faults.
      fill_page_tables(*unfilled_.front().segment, unfilled_.front().part.begin,
                       unfilled_.front().part.end);
      unfilled_.pop_front();
    }
  }
}

std::shared_ptr<const MappedSegment> SegmentMapper::map_now(const Request& request) const {
  try {
    auto mapped =
        map_segment(request.segment, nonce_, request.elements, Deadline::after(kMapTimeout));
    if (mapped) return std::make_shared<const MappedSegment>(std::move(*mapped));
  } catch (const Error& error) {
    log(LogLevel::kWarning,
        fmt::format("the shared memory of {} is not used: {}", request.worker, error.what()));
  }
  return nullptr;
}

}  // namespace syncopate::ps
