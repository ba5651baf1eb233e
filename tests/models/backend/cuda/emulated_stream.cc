#include "tests/models/backend/cuda/emulated_stream.h"

#include <pthread.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <utility>

namespace syncopate::cuda {
namespace {

struct Stream;

struct Item {
  std::function<void()> work;       // empty if the item only waits
  std::shared_ptr<Stream> awaited;  // null if the item waits for no stream
  std::uint64_t position = 0;       // the number of the awaited stream's items that must be done
};

// Protects all streams: their pending items and their positions.
std::mutex& mutex() {
  static std::mutex of_all;
  return of_all;
}
std::condition_variable_any& changed() {
  static std::condition_variable_any of_all;
  return of_all;
}

struct Stream {
  // All members of Stream are guarded by mutex().
  std::deque<Item> pending;
  std::uint64_t num_done = 0;

  int pace = 0;         // 0: runs only when awaited, 1: now and then, 2: at each call
  std::jthread worker;  // runs the items without a pace; starts with the first item

  std::uint64_t end() const { return num_done + pending.size(); }
  bool can_continue() const {
    return !pending.empty() && (pending.front().awaited == nullptr ||
                                pending.front().awaited->num_done >= pending.front().position);
  }
  void do_one(std::unique_lock<std::mutex>& lock) {
    const std::function<void()> work = std::move(pending.front().work);
    lock.unlock();
    if (work) work();
    lock.lock();
    // A stream's item is removed after it has run: a caller that finds nothing pending runs its own
    // work at once.
    const Item done = std::move(pending.front());
    pending.pop_front();
    ++num_done;
    changed().notify_all();
  }
  // Waits until a stream has reached `position`. If the stream has no worker, the calling thread
  // runs the items.
  void finish(std::uint64_t position, std::unique_lock<std::mutex>& lock) {
    if (worker.joinable()) {
      changed().wait(lock, [&] { return num_done >= position; });
    }
    while (num_done < position) {
      if (const auto& front = pending.front(); front.awaited != nullptr) {
        front.awaited->finish(front.position, lock);
      }
      do_one(lock);
    }
  }
  void begin_worker() {
    if (worker.joinable()) return;
    worker = std::jthread([this](const std::stop_token& stop) {
      pthread_setname_np(pthread_self(), "emulated-stream");
      std::unique_lock lock(mutex());
      while (changed().wait(lock, stop, [this] { return can_continue(); })) do_one(lock);
    });
  }
};

struct Event {
  std::shared_ptr<Stream> stream;  // null if the event was never recorded and so has passed
  std::uint64_t position = 0;
};

// Pace drives the calling thread's streams while an EmulatedPace lives.
struct Pace {
  std::mt19937_64 random;
  std::vector<std::shared_ptr<Stream>> streams;

  void add(const std::shared_ptr<Stream>& stream) {
    if (std::ranges::find(streams, stream) != streams.end()) return;
    stream->pace = static_cast<int>(random() % 3);
    streams.push_back(stream);
  }
  void go_on(std::unique_lock<std::mutex>& lock) {
    for (const auto& stream : streams) {
      while (stream->can_continue() &&
             (stream->pace == 2 || (stream->pace == 1 && random() % 2 == 0))) {
        stream->do_one(lock);
      }
    }
  }
};

std::unique_ptr<Pace>& pace() {
  thread_local std::unique_ptr<Pace> of_this_thread;
  return of_this_thread;
}

std::shared_ptr<Stream>& stream_of(cudaStream_t handle) {
  return *reinterpret_cast<std::shared_ptr<Stream>*>(handle);
}

Event& event_of(cudaEvent_t handle) { return *reinterpret_cast<Event*>(handle); }

// Returns whether new work on a stream has to queue instead of running at once.
bool is_behind(const Stream& stream) { return pace() != nullptr || !stream.pending.empty(); }

void add(const std::shared_ptr<Stream>& stream, Item item, std::unique_lock<std::mutex>& lock) {
  stream->pending.push_back(std::move(item));
  if (pace() != nullptr) {
    pace()->add(stream);
    pace()->go_on(lock);
  } else {
    stream->begin_worker();
    changed().notify_all();
  }
}

}  // namespace

RecordedWork*& recorded_work() noexcept {
  thread_local RecordedWork* work = nullptr;
  return work;
}

void do_or_record(cudaStream_t handle, std::function<void()> work) {
  if (recorded_work() != nullptr) return recorded_work()->push_back(std::move(work));
  if (handle != nullptr) {
    const std::shared_ptr<Stream>& stream = stream_of(handle);
    std::unique_lock lock(mutex());
    if (is_behind(*stream)) return add(stream, {.work = std::move(work)}, lock);
  }
  work();
}

void add_slow_work(cudaStream_t stream, std::function<void()> work) {
  std::unique_lock lock(mutex());
  add(stream_of(stream), {.work = std::move(work)}, lock);
}

EmulatedPace::EmulatedPace(std::uint64_t seed) {
  pace() = std::make_unique<Pace>();
  pace()->random.seed(seed);
}

EmulatedPace::~EmulatedPace() {
  finish_all_streams();
  pace().reset();
}

cudaStream_t create_stream() {
  return reinterpret_cast<cudaStream_t>(new std::shared_ptr<Stream>(std::make_shared<Stream>()));
}

void destroy_stream(cudaStream_t stream) {
  finish_stream(stream);
  stream_of(stream)->worker = {};  // stops and joins the thread
  delete &stream_of(stream);
}

cudaEvent_t create_event() { return reinterpret_cast<cudaEvent_t>(new Event); }
void destroy_event(cudaEvent_t event) { delete &event_of(event); }

void record_event(cudaEvent_t event, cudaStream_t handle) {
  const std::lock_guard lock(mutex());
  event_of(event) = {};
  if (handle == nullptr || !is_behind(*stream_of(handle))) return;
  event_of(event) = {stream_of(handle), stream_of(handle)->end()};
}

bool has_passed(cudaEvent_t event) {
  const std::lock_guard lock(mutex());
  const Event& asked = event_of(event);
  return asked.stream == nullptr || asked.stream->num_done >= asked.position;
}

void let_stream_wait(cudaStream_t stream, cudaEvent_t event) {
  std::unique_lock lock(mutex());
  const Event& awaited = event_of(event);
  if (awaited.stream == nullptr) return;
  if (pace() == nullptr && awaited.stream->num_done >= awaited.position) return;
  add(stream_of(stream), {.awaited = awaited.stream, .position = awaited.position}, lock);
}

void finish_stream(cudaStream_t handle) {
  if (handle == nullptr) return;
  std::unique_lock lock(mutex());
  stream_of(handle)->finish(stream_of(handle)->end(), lock);
}

void finish_event(cudaEvent_t event) {
  std::unique_lock lock(mutex());
  const Event awaited = event_of(event);
  if (awaited.stream != nullptr) awaited.stream->finish(awaited.position, lock);
}

void finish_all_streams() {
  if (pace() == nullptr) return;
  std::unique_lock lock(mutex());
  for (const auto& stream : pace()->streams) stream->finish(stream->end(), lock);
}

}  // namespace syncopate::cuda
