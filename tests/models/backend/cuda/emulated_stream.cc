#include "tests/models/backend/cuda/emulated_stream.h"

#include <algorithm>
#include <deque>
#include <memory>
#include <random>
#include <utility>

namespace syncopate::cuda {
namespace {

struct Stream;

struct Item {
  std::function<void()> work;       // empty: it only waits
  std::shared_ptr<Stream> awaited;  // null: for nobody
  std::uint64_t position = 0;       // of the awaited stream's work, so much must be done
};

struct Stream {
  std::deque<Item> pending;
  std::uint64_t num_done = 0;
  int pace = 0;  // 0: never by itself, 1: now and then, 2: whenever it can

  std::uint64_t end() const { return num_done + pending.size(); }
  bool can_go_on() const {
    return !pending.empty() && (pending.front().awaited == nullptr ||
                                pending.front().awaited->num_done >= pending.front().position);
  }
  void do_one() {
    const Item item = std::move(pending.front());
    pending.pop_front();
    if (item.work) item.work();
    ++num_done;
  }
  void finish(std::uint64_t position) {
    while (num_done < position) {
      if (pending.front().awaited) pending.front().awaited->finish(pending.front().position);
      do_one();
    }
  }
};

struct Event {
  std::shared_ptr<Stream> stream;  // null: never recorded, which has passed
  std::uint64_t position = 0;
};

struct Pace {
  std::mt19937_64 random;
  std::vector<std::shared_ptr<Stream>> streams;

  void add(const std::shared_ptr<Stream>& stream) {
    if (std::ranges::find(streams, stream) != streams.end()) return;
    stream->pace = static_cast<int>(random() % 3);
    streams.push_back(stream);
  }
  void go_on() {
    for (const auto& stream : streams) {
      while (stream->can_go_on() &&
             (stream->pace == 2 || (stream->pace == 1 && random() % 2 == 0))) {
        stream->do_one();
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

void add(cudaStream_t handle, Item item) {
  const std::shared_ptr<Stream>& stream = stream_of(handle);
  pace()->add(stream);
  stream->pending.push_back(std::move(item));
  pace()->go_on();
}

}  // namespace

RecordedWork*& recorded_work() noexcept {
  thread_local RecordedWork* work = nullptr;
  return work;
}

void do_or_record(cudaStream_t stream, std::function<void()> work) {
  if (recorded_work() != nullptr) {
    recorded_work()->push_back(std::move(work));
  } else if (pace() != nullptr && stream != nullptr) {
    add(stream, {.work = std::move(work)});
  } else {
    work();
  }
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
  delete &stream_of(stream);
}

cudaEvent_t create_event() { return reinterpret_cast<cudaEvent_t>(new Event); }
void destroy_event(cudaEvent_t event) { delete &event_of(event); }

void record_event(cudaEvent_t event, cudaStream_t stream) {
  if (pace() == nullptr || stream == nullptr) return;
  event_of(event) = {stream_of(stream), stream_of(stream)->end()};
}

void let_stream_wait(cudaStream_t stream, cudaEvent_t event) {
  if (pace() == nullptr || event_of(event).stream == nullptr) return;
  add(stream, {.awaited = event_of(event).stream, .position = event_of(event).position});
}

void finish_stream(cudaStream_t stream) {
  if (stream != nullptr) stream_of(stream)->finish(stream_of(stream)->end());
}

void finish_event(cudaEvent_t event) {
  const Event& awaited = event_of(event);
  if (awaited.stream != nullptr) awaited.stream->finish(awaited.position);
}

void finish_all_streams() {
  if (pace() == nullptr) return;
  for (const auto& stream : pace()->streams) stream->finish(stream->end());
}

}  // namespace syncopate::cuda
