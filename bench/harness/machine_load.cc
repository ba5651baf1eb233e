#include "bench/harness/machine_load.h"

#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "bench/harness/measure.h"
#include "models/base/errors.h"

namespace syncopate::bench {
namespace {

double seconds_of_ticks(double ticks) { return ticks / static_cast<double>(sysconf(_SC_CLK_TCK)); }

// Time stolen by the host counts as busy, because the measured processes did not get it either.
// Source: proc(5), /proc/stat.
double machine_busy_seconds() {
  std::ifstream file("/proc/stat");
  std::string label;
  std::array<double, 8> ticks{};  // in the order user nice system idle iowait irq softirq steal
  file >> label;
  for (double& value : ticks) file >> value;
  if (!file) throw FileError("/proc/stat: expected a first line with 8 counts; is /proc mounted?");
  return seconds_of_ticks(ticks[0] + ticks[1] + ticks[2] + ticks[5] + ticks[6] + ticks[7]);
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

// Returns the first two cores that this process may use, or fewer when it may use fewer.
std::vector<int> two_cores() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  std::vector<int> cores;
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return cores;
  for (int core = 0; core < CPU_SETSIZE && cores.size() < 2; ++core) {
    if (CPU_ISSET(core, &allowed)) cores.push_back(core);
  }
  return cores;
}

void bind_this_thread(int core) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(core, &one);
  pthread_setaffinity_np(pthread_self(), sizeof(one), &one);
}

}  // namespace

double this_process_cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// Reads the CPU time, fields 14 and 15 of /proc/PID/stat. The name before them is in parentheses
// and may contain spaces.
double other_process_cpu_seconds(pid_t pid) {
  const std::string path = "/proc/" + std::to_string(pid) + "/stat";
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  const std::size_t name_end = line.rfind(')');
  if (name_end == std::string::npos)
    throw FileError(path + ": cannot be read; has the process ended?");
  std::istringstream fields(line.substr(name_end + 1));
  std::string skipped;
  for (int field = 3; field < 14; ++field) fields >> skipped;
  double user_ticks = 0.0;
  double system_ticks = 0.0;
  fields >> user_ticks >> system_ticks;
  return seconds_of_ticks(user_ticks + system_ticks);
}

ForeignLoadMeter::ForeignLoadMeter(std::vector<pid_t> other_side)
    : other_side_(std::move(other_side)), last_(read()) {}

ForeignLoadMeter::Reading ForeignLoadMeter::read() const {
  Reading reading{machine_busy_seconds(), this_process_cpu_seconds(), SteadyClock::now()};
  for (const pid_t pid : other_side_) reading.own_seconds += other_process_cpu_seconds(pid);
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
  const std::vector<int> cores = two_cores();
  if (cores.size() < 2) return std::nullopt;
  double best_seconds = 0.0;
  for (int attempt = 0; attempt < kTries; ++attempt) {
    Ring ring;
    double seconds = 0.0;
    std::jthread sender([&] {
      bind_this_thread(cores[0]);
      send(ring);
    });
    std::jthread receiver([&] {
      bind_this_thread(cores[1]);
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
