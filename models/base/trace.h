// Records what the threads of a process do and when (--trace), as a Chrome trace; ui.perfetto.dev
// and chrome://tracing show it. Strategies, the train loops and the readers of the input record
// their spans here.
// Source: "Trace Event Format" (Google), the form of a JSON array. Its closing bracket may be
// missing.
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

// The kind of a span. The event of a span has the name of its kind.
enum class TraceKind : std::uint8_t {
  kStep,           // a whole step of a replica
  kInput,          // a replica waits for its batch, or a reader makes a batch
  kForward,        // on a GPU, the time that the host takes to start the work
  kBackward,       // as kForward
  kCommunication,  // a replica sends gradients or waits for sums or values, a stage for another
  kUpdate,
  kEvaluation,
  kCheckpoint,
};

class Trace;

// Records the spans of one thread, which alone uses it.
class TraceThread {
 public:
  using Clock = std::chrono::steady_clock;

  TraceThread(Trace& trace, int id) : trace_(trace), id_(id) {}

  // Records one span. number: of the step, the batch or the micro-batch; -1: none. Spans of a
  // thread may nest, but not overlap otherwise. Spans shorter than 1 us are left out.
  void add(TraceKind kind, Clock::time_point begun, Clock::time_point ended, std::int64_t number);

 private:
  friend class Trace;
  struct Record {
    std::int64_t begun_us = 0;  // since 1970
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

// The trace of one process, a file that is written while the process runs: whenever 256 spans of a
// thread are in memory, or the first of them is a second old. Thread-safe. A process that is killed
// leaves whole events, and a disk that becomes full ends the trace with a warning.
class Trace {
 public:
  // Opens the file and writes its first events, so that a full disk is found at the start. task:
  // number of this task in its job. Throws FileError naming --trace.
  Trace(std::filesystem::path path, int task, std::string_view task_name);
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;
  // Writes the end of the file. No thread may record any more.
  ~Trace();

  // Returns the record of a thread, which lives as long as the trace. A thread that replaces an
  // ended one has its id and name.
  TraceThread& thread(int id, std::string_view name);

 private:
  friend class TraceThread;

  void write(TraceThread& thread);
  // The following functions require the mutex.
  void append(std::string_view event);
  void append_name(std::string_view event, int id, std::string_view name);
  void append_records(TraceThread& thread);
  // Writes the text to the file and clears it. Returns 0 or errno.
  int write_text();
  void write_text_or_warn();
  std::int64_t microseconds(TraceThread::Clock::time_point time) const {
    return std::chrono::duration_cast<std::chrono::microseconds>(time.time_since_epoch() +
                                                                 since_1970_)
        .count();
  }

  const std::filesystem::path path_;
  const int task_;
  const std::chrono::nanoseconds since_1970_;  // what is added to a time of TraceThread::Clock

  std::mutex mutex_;  // guards all members below
  FileDescriptor file_;
  std::string text_;      // not yet in the file
  std::size_t size_ = 0;  // bytes of the file and of `text_`
  bool has_failed_ = false;
  std::map<int, std::unique_ptr<TraceThread>> threads_;
};

// Records its own lifetime as a span of the thread that made it. thread: null records nothing.
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

// Throws what Trace() throws if it cannot open the file. Leaves no file behind and changes none.
void check_trace_file(const std::filesystem::path& path);

// Returns the file of a task's trace: `path` in a job of one task, else with the number of the task
// before the extension, such as run.3.json.
std::filesystem::path trace_file(const std::filesystem::path& path, int task, int tasks);

}  // namespace syncopate
