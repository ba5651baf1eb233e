#include "bench/harness/machine_load.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <numeric>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "bench/harness/measure.h"
#include "models/base/affinity.h"
#include "models/base/errors.h"

namespace syncopate::bench {
namespace {

double seconds_of_ticks(double ticks) { return ticks / static_cast<double>(sysconf(_SC_CLK_TCK)); }

// Returns the user and system time of this process (RUSAGE_SELF), or of its descendants that have
// been waited for (RUSAGE_CHILDREN).
double cpu_seconds_of(int processes) {
  rusage usage{};
  getrusage(processes, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

double family_cpu_seconds() {
  return cpu_seconds_of(RUSAGE_SELF) + cpu_seconds_of(RUSAGE_CHILDREN);
}

struct ProcessTimes {
  pid_t parent = 0;
  double seconds = 0.0;  // of the process and of its descendants that it has waited for
};

// Reads the text of /proc/PID/stat: the parent, which is field 4, and the times, which are fields
// 14 to 17. The name before them is in parentheses and may contain spaces. Returns nullopt when the
// process has ended.
std::optional<ProcessTimes> read_process(const std::filesystem::path& folder) {
  std::ifstream file(folder / "stat");
  std::string line;
  std::getline(file, line);
  const std::size_t name_end = line.rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream fields(line.substr(name_end + 1));
  ProcessTimes times;
  std::string skipped;
  fields >> skipped >> times.parent;
  for (int field = 5; field < 14; ++field) fields >> skipped;
  for (int field = 14; field <= 17; ++field) {
    double ticks = 0.0;
    fields >> ticks;
    times.seconds += seconds_of_ticks(ticks);
  }
  return times;
}

std::map<pid_t, ProcessTimes> read_processes() {
  std::map<pid_t, ProcessTimes> processes;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    if (const auto times = read_process(entry.path())) processes.emplace(std::stoi(name), *times);
  }
  return processes;
}

// Returns whether the process or one of its ancestors is among `pids`.
bool is_descendant(const std::map<pid_t, ProcessTimes>& running, pid_t pid,
                   const std::vector<pid_t>& pids) {
  for (auto at = running.find(pid); at != running.end(); at = running.find(at->second.parent)) {
    if (std::ranges::find(pids, at->first) != pids.end()) return true;
  }
  return false;
}

constexpr std::size_t kSlotBytes = std::size_t{128} << 10;
constexpr std::size_t kNumSlots = 4;
constexpr std::size_t kMessageBytes = std::size_t{1} << 20;
constexpr std::size_t kSlotsPerMessage = kMessageBytes / kSlotBytes;
constexpr std::size_t kMessages = 100;
constexpr int kTries = 3;
constexpr double kNearGbPerSecond = 4.0;

struct Ring {
  std::vector<std::byte> memory = std::vector<std::byte>(kSlotBytes * kNumSlots);
  alignas(64) std::atomic<std::size_t> written{0};  // number of slots written so far
  alignas(64) std::atomic<std::size_t> taken{0};

  std::byte* slot(std::size_t number) { return memory.data() + number % kNumSlots * kSlotBytes; }
};

// Waits for a condition: spins first, because waking a thread takes longer than copying a slot,
// and then yields, so that other threads of a busy machine can run.
template <typename Condition>
void wait_until(const Condition& holds) {
  for (int spins = 0; !holds(); ++spins) {
    if (spins > 2000) std::this_thread::yield();
  }
}

void send(Ring& ring) {
  const std::vector<std::byte> message(kMessageBytes, std::byte{1});
  for (std::size_t i = 0; i < kMessages * kSlotsPerMessage; ++i) {
    wait_until([&] { return i - ring.taken.load(std::memory_order_acquire) < kNumSlots; });
    std::memcpy(ring.slot(i), message.data() + i % kSlotsPerMessage * kSlotBytes, kSlotBytes);
    ring.written.store(i + 1, std::memory_order_release);
  }
}

// Returns the seconds from the second message on, because the first message touches fresh memory.
double receive(Ring& ring) {
  std::vector<std::byte> message(kMessageBytes);
  auto start = SteadyClock::now();
  for (std::size_t i = 0; i < kMessages * kSlotsPerMessage; ++i) {
    if (i == kSlotsPerMessage) start = SteadyClock::now();
    wait_until([&] { return ring.written.load(std::memory_order_acquire) > i; });
    std::memcpy(message.data() + i % kSlotsPerMessage * kSlotBytes, ring.slot(i), kSlotBytes);
    ring.taken.store(i + 1, std::memory_order_release);
  }
  return seconds_since(start);
}

}  // namespace

double this_process_cpu_seconds() { return cpu_seconds_of(RUSAGE_SELF); }

double cpu_seconds_of_families(const std::vector<pid_t>& pids) {
  const std::map<pid_t, ProcessTimes> running = read_processes();
  double seconds = 0.0;
  for (const pid_t pid : pids) {
    if (!running.contains(pid)) {
      throw FileError(fmt::format("/proc/{}/stat: cannot be read; has the process ended?", pid));
    }
  }
  for (const auto& [pid, times] : running) {
    if (is_descendant(running, pid, pids)) seconds += times.seconds;
  }
  return seconds;
}

std::string read_proc_stat() { return text_of_file("/proc/stat"); }

CpuTimes cpu_times_in(const std::string& stat, const std::vector<int>& cpus) {
  CpuTimes times;
  bool has_cpu = false;
  std::istringstream lines(stat);
  for (std::string line; std::getline(lines, line) && line.starts_with("cpu");) {
    std::istringstream fields(line.substr(3));
    const bool is_sum = line.starts_with("cpu ");
    int cpu = -1;
    if (!is_sum) fields >> cpu;
    if (cpus.empty() ? !is_sum : std::ranges::find(cpus, cpu) == cpus.end()) continue;
    std::array<double, 8> ticks{};  // in the order user nice system idle iowait irq softirq steal
    for (double& value : ticks) fields >> value;
    if (!fields) break;
    has_cpu = true;
    const double total = std::accumulate(ticks.begin(), ticks.end(), 0.0);
    times.busy_seconds += seconds_of_ticks(ticks[0] + ticks[1] + ticks[2] + ticks[7]);
    times.interrupt_seconds += seconds_of_ticks(ticks[5] + ticks[6]);
    times.total_seconds += seconds_of_ticks(total);
  }
  if (!has_cpu) {
    throw FileError("/proc/stat: expected a line with 8 counts for each CPU; is /proc mounted?");
  }
  return times;
}

OthersMeter::OthersMeter(std::function<std::string()> read_stat)
    : read_stat_(std::move(read_stat)),
      cpus_(usable_cpus()),
      first_(cpu_times_in(read_stat_(), cpus_)),
      own_seconds_(family_cpu_seconds()) {}

double OthersMeter::share() const {
  const CpuTimes now = cpu_times_in(read_stat_(), cpus_);
  const double total = now.total_seconds - first_.total_seconds;
  const double busy = now.busy_seconds - first_.busy_seconds;
  if (total <= 0.0) return 0.0;
  return std::clamp((busy - (family_cpu_seconds() - own_seconds_)) / total, 0.0, 1.0);
}

ForeignLoadMeter::ForeignLoadMeter(std::vector<pid_t> other_side)
    : other_side_(std::move(other_side)), last_(read()) {}

ForeignLoadMeter::Reading ForeignLoadMeter::read() const {
  const CpuTimes machine = cpu_times_in(read_proc_stat());
  Reading reading{machine.busy_seconds + machine.interrupt_seconds, this_process_cpu_seconds(),
                  SteadyClock::now()};
  reading.own_seconds += cpu_seconds_of_families(other_side_);
  return reading;
}

double ForeignLoadMeter::take() {
  const Reading now = read();
  const double wall_seconds = std::chrono::duration<double>(now.when - last_.when).count();
  const double foreign_seconds =
      (now.busy_seconds - last_.busy_seconds) - (now.own_seconds - last_.own_seconds);
  last_ = now;
  return wall_seconds > 0.0 ? std::max(0.0, foreign_seconds / wall_seconds) : 0.0;
}

std::optional<double> measure_core_ring() {
  const std::vector<int> cores = usable_cpus();
  if (cores.size() < 2) return std::nullopt;
  double best_seconds = 0.0;
  for (int attempt = 0; attempt < kTries; ++attempt) {
    Ring ring;
    double seconds = 0.0;
    std::jthread sender([&] {
      bind_this_thread({cores[0]});
      send(ring);
    });
    std::jthread receiver([&] {
      bind_this_thread({cores[1]});
      seconds = receive(ring);
    });
    sender.join();
    receiver.join();
    best_seconds = attempt == 0 ? seconds : std::min(best_seconds, seconds);
  }
  return 1e-9 * static_cast<double>((kMessages - 1) * kMessageBytes) / best_seconds;
}

std::string_view placement_name(double ring_gb_per_s) noexcept {
  return ring_gb_per_s >= kNearGbPerSecond ? "near" : "far";
}

}  // namespace syncopate::bench
