#include "models/base/trace.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <iterator>
#include <span>
#include <utility>

#include "models/base/errors.h"
#include "models/base/file_lock.h"
#include "models/base/log.h"

namespace syncopate {
namespace {

constexpr std::chrono::seconds kMostDelay(1);  // of a record that is still in memory
// A write that a kill or a full disk cuts short ends at a page of the file.
constexpr std::size_t kPage = 4096;

struct KindRow {
  std::string_view name;
  std::string_view category;
  std::string_view number;  // what the number of such a span counts
};
// By TraceKind.
constexpr std::array<KindRow, 9> kKinds = {{{"step", "step", "step"},
                                            {"input", "input", "batch"},
                                            {"forward", "compute", "micro_batch"},
                                            {"backward", "compute", "micro_batch"},
                                            {"communication", "communication", "micro_batch"},
                                            {"update", "update", ""},
                                            {"evaluation", "evaluation", "step"},
                                            {"checkpoint", "checkpoint", "step"},
                                            {"exchange", "communication", "round"}}};

FileDescriptor open_to_write(const std::filesystem::path& path) {
  constexpr mode_t kBeforeUmask = 0666;
  // A pipe would hold the program up until another one reads it.
  std::error_code ignored;
  if (std::filesystem::is_fifo(path, ignored)) {
    throw FileError("open --trace " + path.string() + ": it is a named pipe; give a file");
  }
  FileDescriptor file(::open(path.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, kBeforeUmask));
  if (!file) {
    throw FileError(describe_errno("open --trace", path.string(), errno) +
                    "; give a file in a folder that exists");
  }
  return file;
}

FileDescriptor open_trace(const std::filesystem::path& path) {
  // The trace of a run that ended early tells why; a run that goes on must not remove it.
  std::error_code failed;
  if (std::filesystem::is_regular_file(path, failed)) {
    claim_file(open_to_write(path), "--trace", path);
    std::filesystem::rename(path, path.string() + ".old", failed);
  }
  FileDescriptor file = open_to_write(path);
  claim_empty_file(file, "--trace", path);
  return file;
}

}  // namespace

void check_trace_file(const std::filesystem::path& path) {
  std::error_code failed;
  const bool was_there = std::filesystem::exists(path, failed);
  open_to_write(path);
  if (!was_there) std::filesystem::remove(path, failed);
}

void TraceThread::add(TraceKind kind, Clock::time_point begun, Clock::time_point ended,
                      std::int64_t number) {
  // Both ends are rounded down to microseconds, so that spans that nest still do.
  const std::int64_t first = trace_.microseconds(begun);
  const std::int64_t length = trace_.microseconds(ended) - first;
  if (length == 0) return;
  records_[size_++] = {first, length, number, kind};
  if (size_ < records_.size() && ended - written_ < kMostDelay) return;
  trace_.write(*this);
  written_ = ended;
}

Trace::Trace(std::filesystem::path path, int task, std::string_view task_name)
    : path_(std::move(path)),
      task_(task),
      since_1970_(std::chrono::system_clock::now().time_since_epoch() -
                  TraceThread::Clock::now().time_since_epoch()),
      file_(open_trace(path_)) {
  append_name("process_name", 0, task_name);
  if (const int error = write_text(); error != 0) {
    throw FileError(describe_errno("write --trace", path_.string(), error) +
                    "; free some space, or give another file");
  }
}

Trace::~Trace() {
  try {
    const std::lock_guard lock(mutex_);
    for (const auto& [id, thread] : threads_) append_records(*thread);
    text_ += "\n]\n";
    write_text_or_warn();
  } catch (const std::exception& error) {
    log(LogLevel::kWarning, fmt::format("--trace {}: {}", path_.string(), error.what()));
  }
}

TraceThread& Trace::thread(int id, std::string_view name) {
  const std::lock_guard lock(mutex_);
  auto& thread = threads_[id];
  if (thread == nullptr) {
    thread = std::make_unique<TraceThread>(*this, id);
    append_name("thread_name", id, name);
  }
  return *thread;
}

void Trace::write(TraceThread& thread) {
  const std::lock_guard lock(mutex_);
  append_records(thread);
  write_text_or_warn();
}

// Adds an event to the text. Blanks keep it within a page, so that a file that was cut short has
// whole events.
void Trace::append(std::string_view event) {
  const std::string_view before = size_ == 0 ? "[\n" : ",\n";
  const std::size_t length = before.size() + event.size();
  const std::size_t rest = kPage - size_ % kPage;
  const std::size_t blanks = length > rest && length <= kPage ? rest : 0;
  text_.append(blanks, ' ').append(before).append(event);
  size_ += blanks + length;
}

void Trace::append_name(std::string_view event, int id, std::string_view name) {
  append(fmt::format(R"({{"name":"{}","ph":"M","pid":{},"tid":{},"args":{{"name":"{}"}}}})", event,
                     task_, id, name));
}

void Trace::append_records(TraceThread& thread) {
  for (std::size_t i = 0; i < thread.size_; ++i) {
    const TraceThread::Record& record = thread.records_[i];
    const KindRow& row = kKinds[static_cast<std::size_t>(record.kind)];
    fmt::memory_buffer event;
    fmt::format_to(std::back_inserter(event),
                   R"({{"name":"{}","cat":"{}","ph":"X","ts":{},"dur":{},"pid":{},"tid":{})",
                   row.name, row.category, record.begun_us, record.length_us, task_, thread.id_);
    if (record.number >= 0 && !row.number.empty()) {
      fmt::format_to(std::back_inserter(event), R"(,"args":{{"{}":{}}})", row.number,
                     record.number);
    }
    event.push_back('}');
    append({event.data(), event.size()});
  }
  thread.size_ = 0;
}

int Trace::write_text() {
  const std::span<const char> text = text_;
  const int error = write_all(file_, std::as_bytes(text)) < text.size() ? errno : 0;
  text_.clear();
  return error;
}

void Trace::write_text_or_warn() {
  if (has_failed_) return text_.clear();
  const int error = write_text();
  has_failed_ = error != 0;
  if (!has_failed_) return;
  log(LogLevel::kWarning, describe_errno("write --trace", path_.string(), error) +
                              "; training goes on, and the trace ends here");
}

std::filesystem::path trace_file(const std::filesystem::path& path, int task, int tasks) {
  if (tasks == 1) return path;
  std::filesystem::path file = path;
  return file.replace_extension(fmt::format(".{}{}", task, path.extension().string()));
}

}  // namespace syncopate
