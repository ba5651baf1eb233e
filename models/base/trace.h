// Records what the threads of a process do and when (--trace), as a Chrome trace; ui.perfetto.dev
// and chrome://tracing show it. Strategies, the train loops and the readers of the input record
// their spans here.
// Source: "Trace Event Format" (Google), in the form of a JSON array, which needs no closing
// bracket.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "models/base/file_descriptor.h"

namespace syncopate {

// The kinds of spans. The name of a kind is the name of its events in the file.
enum class TraceKind : std::uint8_t {
  kStep,      // a whole step of a replica
  kInput,     // a replica waits for its batch, or a reader makes a batch
  kForward,   // on a GPU: only the time in which the host starts the work
  kBackward,  // on a GPU: as for kForward
  // A replica sends gradients or waits for sums or values, or a stage waits for another stage.
  kCommunication,
  kUpdate,
  kEvaluation,
  kCheckpoint,
  kExchange,  // the end of a round of local updates: waiting for replicas, sums and the outer step
};

class Trace;

// Records the spans of one thread: what the thread did, from when to when. Only this thread uses
// the object.
class TraceThread {
 public:
  using Clock = std::chrono::steady_clock;

  TraceThread(Trace& trace, int id) : trace_(trace), id_(id) {}

  // Records one span: the thread did work of this kind from `begun` to `ended`. number: the number
  // of the step, the batch or the micro-batch; -1: none. Spans of a thread may be nested, but must
  // not overlap otherwise. Spans shorter than 1 us are left out.
  void add(TraceKind kind, Clock::time_point begun, Clock::time_point ended, std::int64_t number);

 private:
  friend class Trace;
  struct Record {
    std::int64_t begun_us = 0;  // begin of the span, since 1970
    std::int64_t length_us = 0;
    std::int64_t number = -1;
    TraceKind kind = TraceKind::kStep;
  };
  static constexpr std::size_t kMostRecords = 256;

  Trace& trace_;
  const int id_;
  std::array<Record, kMostRecords> records_;
  std::size_t size_ = 0;
  Clock::time_point written_ = Clock::now();
};

// The trace file of one process, written while the process runs. The spans of a thread are written
// when there are 256 in memory, or when a span ends more than a second after the last write. If the
// process is killed, the file ends with a complete event. If the disk becomes full, the trace ends
// with a warning. Thread-safe.
class Trace {
 public:
  // Opens the file and writes its first events, so that a full disk is noticed at the start. task:
  // the number of this task in its job. Throws FileError naming --trace.
  Trace(std::filesystem::path path, int task, std::string_view task_name);
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;
  // Writes the end of the file. No thread may record a span during or after this call.
  ~Trace();

  // Returns the TraceThread that records the spans of the thread with this id. The TraceThread
  // lives as long as the Trace. A thread that takes over from an ended thread uses the same id and
  // name.
  TraceThread& thread(int id, std::string_view name);

 private:
  friend class TraceThread;

  void write(TraceThread& thread);
  // The caller of the following functions must hold mutex_.
  void append(std::string_view event);
  void append_name(std::string_view event, int id, std::string_view name);
  void append_records(TraceThread& thread);
  // Writes text_ to the file and clears text_. Returns 0, or the errno of a failed write.
  int write_text();
  void write_text_or_warn();
  std::int64_t microseconds(TraceThread::Clock::time_point time) const {
    return std::chrono::duration_cast<std::chrono::microseconds>(time.time_since_epoch() +
                                                                 since_1970_)
        .count();
  }

  const std::filesystem::path path_;
  const int task_;
  // Added to a time of TraceThread::Clock to get the time since 1970.
  const std::chrono::nanoseconds since_1970_;

  std::mutex mutex_;  // guards all members below
  FileDescriptor file_;
  std::string text_;      // events that are not yet in the file
  std::size_t size_ = 0;  // bytes in the file and in text_ together
  bool has_failed_ = false;
  std::map<int, std::unique_ptr<TraceThread>> threads_;
};

// Records its own lifetime as a span of `thread`, which must be the calling thread. If `thread` is
// null, records nothing.
class Span {
 public:
  Span(TraceThread* thread, TraceKind kind, std::int64_t number = -1)
      : thread_(thread), number_(number), kind_(kind) {
    if (thread_ != nullptr) begun_ = TraceThread::Clock::now();
  }
  Span(const Span&) = delete;
  Span& operator=(const Span&) = delete;
  ~Span() {
    if (thread_ != nullptr) thread_->add(kind_, begun_, TraceThread::Clock::now(), number_);
  }

 private:
  TraceThread* const thread_;
  const std::int64_t number_;
  const TraceKind kind_;
  TraceThread::Clock::time_point begun_;
};

// Checks that a trace file can be opened at `path`; if not, throws what the constructor of Trace
// throws. Leaves no new file behind and changes no existing file.
void check_trace_file(const std::filesystem::path& path);

// Returns the path of a task's trace file. In a job with one task this is `path`; otherwise the
// number of the task is inserted before the extension, such as run.3.json.
std::filesystem::path trace_file(const std::filesystem::path& path, int task, int tasks);

}  // namespace syncopate
