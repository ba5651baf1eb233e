#include "bench/harness/placement.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <thread>
#include <vector>

namespace syncopate::bench {
namespace {

constexpr std::size_t kSlotBytes = std::size_t{128} << 10;
constexpr std::size_t kNumSlots = 4;
constexpr std::size_t kMessageBytes = std::size_t{1} << 20;
constexpr std::size_t kSlotsPerMessage = kMessageBytes / kSlotBytes;
constexpr std::size_t kMessages = 100;
constexpr int kTries = 3;
constexpr double kNearGbPerSecond = 4.0;

struct Ring {
  std::vector<std::byte> memory = std::vector<std::byte>(kSlotBytes * kNumSlots);
  alignas(64) std::atomic<std::size_t> written{0};  // Both counters count slots.
  alignas(64) std::atomic<std::size_t> taken{0};

  std::byte* slot(std::size_t number) { return memory.data() + number % kNumSlots * kSlotBytes; }
};

// Spins first, because waking a thread takes longer than passing a slot, and then yields, so that
// other threads of a busy machine can run.
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
  auto start = std::chrono::steady_clock::now();
  for (std::size_t i = 0; i < kMessages * kSlotsPerMessage; ++i) {
    if (i == kSlotsPerMessage) start = std::chrono::steady_clock::now();
    wait_until([&] { return ring.written.load(std::memory_order_acquire) > i; });
    std::memcpy(message.data() + i % kSlotsPerMessage * kSlotBytes, ring.slot(i), kSlotBytes);
    ring.taken.store(i + 1, std::memory_order_release);
  }
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
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
