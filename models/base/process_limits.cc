#include "models/base/process_limits.h"

#include <fmt/format.h>
#include <malloc.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <mutex>
#include <new>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "models/base/errors.h"
#include "models/base/resource_limits.h"

namespace syncopate {
namespace {

namespace fs = std::filesystem;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kHasSanitizer = true;
#else
constexpr bool kHasSanitizer = false;
#endif

// Stacks of threads where address space is limited: the default, 8 MiB, is taken from it in full.
constexpr std::size_t kSmallStackBytes = std::size_t{1} << 20;
// The main thread's stack grows on demand. If it cannot grow, the process ends by SIGSEGV.
constexpr std::size_t kMainStackBytes = std::size_t{1} << 20;

std::optional<rlim_t> soft_limit(__rlimit_resource resource) {
  rlimit limit{};
  if (getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return std::nullopt;
  return limit.rlim_cur;
}

std::size_t address_space_in_use(const fs::path& root) {
  std::size_t pages = 0;
  std::ifstream(root / "proc/self/statm") >> pages;
  return pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

// Writes a line and ends the process: the default action of the signal would be a crash.
void end_after_signal(int /*signal*/) {
  constexpr std::string_view kLine =
      "syncopate: a library gave up, most likely for want of address space: raise the limit with "
      "ulimit -v unlimited, and ulimit -d unlimited\n";
  const ssize_t written = write(STDERR_FILENO, kLine.data(), kLine.size());
  (void)written;
  _exit(EXIT_FAILURE);
}

// Touches the pages of the main thread's stack, so that it has grown.
[[gnu::noinline]] void grow_stack(std::size_t size_bytes) {
  auto* bytes = static_cast<volatile char*>(__builtin_alloca(size_bytes));
  for (std::size_t at = 0; at < size_bytes; at += 4096) bytes[at] = 0;
}

// Threads that wait until all of them run.
class ProbeThreads {
 public:
  ~ProbeThreads() {
    {
      const std::lock_guard lock(mutex_);
      may_end_ = true;
    }
    ended_.notify_all();
  }
  void start(int count) {
    threads_.reserve(static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i) {
      threads_.emplace_back([this] {
        std::unique_lock lock(mutex_);
        ended_.wait(lock, [this] { return may_end_; });
      });
    }
  }

 private:
  std::mutex mutex_;
  std::condition_variable ended_;
  bool may_end_ = false;               // GUARDED_BY(mutex_)
  std::vector<std::jthread> threads_;  // declared last: the threads use the other members
};

// Address space that is taken and not used.
class SpareAddresses {
 public:
  explicit SpareAddresses(std::size_t bytes)
      : bytes_(bytes),
        start_(mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {}
  SpareAddresses(const SpareAddresses&) = delete;
  SpareAddresses& operator=(const SpareAddresses&) = delete;
  ~SpareAddresses() {
    if (start_ != MAP_FAILED) munmap(start_, bytes_);
  }
  bool is_there() const noexcept { return start_ != MAP_FAILED; }

 private:
  std::size_t bytes_;
  void* start_;
};

// Returns the limits of the process on its memory, which also bound the stacks of threads.
std::string address_space_advice(const fs::path& root) {
  std::string advice;
  if (const std::optional<rlim_t> limit = soft_limit(RLIMIT_AS)) {
    advice = fmt::format(
        "the limit on address space is {} MiB, of which {} MiB are in use: raise it with ulimit -v "
        "unlimited",
        *limit >> 20, address_space_in_use(root) >> 20);
  }
  if (const std::optional<rlim_t> limit = soft_limit(RLIMIT_DATA)) {
    advice += fmt::format("{}the limit on data is {} MiB: raise it with ulimit -d unlimited",
                          advice.empty() ? "" : "; ", *limit >> 20);
  }
  return advice;
}

// Lets a signal end the process with one line, on a stack of its own: the usual one may have no
// room left.
void end_with_a_line_on(int signal) {
  static std::array<std::byte, 1U << 16U> stack;
  stack_t alternative{};
  alternative.ss_sp = stack.data();
  alternative.ss_size = stack.size();
  sigaltstack(&alternative, nullptr);
  struct sigaction action {};
  action.sa_handler = end_after_signal;
  action.sa_flags = SA_ONSTACK;
  sigaction(signal, &action, nullptr);
}

}  // namespace

void adapt_to_limited_address_space() {
  if (kHasSanitizer || (!soft_limit(RLIMIT_AS) && !soft_limit(RLIMIT_DATA))) return;
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kSmallStackBytes);
  pthread_setattr_default_np(&attributes);
  pthread_attr_destroy(&attributes);
  mallopt(M_ARENA_MAX, 1);  // an arena of a thread takes 64 MiB of addresses
  // Part of the stack, which a limit of its own may bound, is in use.
  grow_stack(std::min<std::size_t>(kMainStackBytes,
                                   soft_limit(RLIMIT_STACK).value_or(2 * kMainStackBytes) / 2));
  end_with_a_line_on(SIGABRT);
  end_with_a_line_on(SIGSEGV);  // an allocation that a library does not check, or a stack
}

void require_threads(int count, std::size_t spare_bytes, std::string_view task) {
  const SpareAddresses spare(spare_bytes);
  if (!spare.is_there()) {
    throw UsageError(fmt::format("{} needs {} MiB of address space: {}", task, spare_bytes >> 20,
                                 memory_advice()));
  }
  ProbeThreads threads;
  try {
    threads.start(count);
  } catch (const std::exception&) {  // std::system_error or std::bad_alloc
    throw UsageError(fmt::format("{} needs {} more threads, which the system does not start: {}",
                                 task, count, thread_advice()));
  }
}

std::string memory_advice(const fs::path& root) {
  std::string advice = address_space_advice(root);
  if (const std::optional<MemoryLimit> limit = cgroup_memory(root)) {
    advice += fmt::format(
        "{}the limit of the memory cgroup (container, job) is {} MiB, of which {} "
        "MiB are in use: give it more",
        advice.empty() ? "" : "; ", limit->bytes >> 20, limit->used_bytes >> 20);
  }
  if (!advice.empty()) return advice;
  return fmt::format("{} MiB of the machine's memory are available", available_memory(root) >> 20);
}

std::int64_t obtainable_memory(const fs::path& root) {
  std::int64_t bytes = available_memory(root);
  if (bytes == 0 && !cgroup_memory(root))
    bytes = std::numeric_limits<std::int64_t>::max();
  else
    bytes += free_swap(root);
  if (const std::optional<rlim_t> limit = soft_limit(RLIMIT_AS)) {
    const std::size_t used = std::min<std::size_t>(*limit, address_space_in_use(root));
    bytes = std::min(bytes, static_cast<std::int64_t>(*limit - used));
  }
  return bytes;
}

MemoryKills::MemoryKills(fs::path root, std::chrono::nanoseconds interval)
    : root_(std::move(root)),
      interval_(interval),
      next_look_(Deadline::after(interval)),
      explained_(count_memory_kills(root_)),
      seen_(explained_) {}

void MemoryKills::look() {
  if (!next_look_.passed()) return;
  next_look_ = Deadline::after(interval_);
  explained_ = std::max(explained_, std::exchange(seen_, count_memory_kills(root_)));
}

std::string MemoryKills::reason() {
  if (count_memory_kills(root_) <= explained_) return "";
  ++explained_;
  const std::optional<MemoryLimit> limit = cgroup_memory(root_);
  return fmt::format(
      ", probably by the kernel for want of memory ({}); start fewer tasks, or take a smaller "
      "batch or network",
      limit ? fmt::format("limit of the memory cgroup: {} MiB", limit->bytes >> 20)
            : "of the machine");
}

std::string thread_advice(const fs::path& root) {
  std::string advice = address_space_advice(root);
  if (const std::optional<rlim_t> limit = soft_limit(RLIMIT_NPROC); limit && geteuid() != 0) {
    advice += fmt::format(
        "{}the limit on processes and threads of the user is {}: raise it with "
        "ulimit -u unlimited, or end other processes of the user",
        advice.empty() ? "" : "; ", *limit);
  }
  if (const std::optional<std::int64_t> limit = cgroup_threads(root)) {
    advice += fmt::format("{}the limit of the cgroup (container, job) is {} threads: give it more",
                          advice.empty() ? "" : "; ", *limit);
  }
  return advice.empty() ? "the machine has no room for them" : advice;
}

}  // namespace syncopate
