#include "bench/compare/report/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <fstream>
#include <map>
#include <set>
#include <utility>

#include "bench/compare/report/comparison.h"
#include "bench/harness/program_commit.h"
#include "bench/plots/text.h"
#include "models/backend/backend.h"
#include "models/backend/cuda_module.h"
#include "models/base/affinity.h"
#include "models/base/errors.h"
#include "models/base/isa.h"
#include "models/base/resource_limits.h"
#include "ps/net/endpoint.h"
#include "worker/run/exit_codes.h"

namespace syncopate::bench {
namespace {

std::vector<std::string> gpus_here() {
  std::vector<std::string> names;
  try {
    for (const CudaDevice& device : load_cuda_module().devices()) names.push_back(device.name);
  } catch (const UnavailableError&) {  // no driver, or a build without CUDA
  }
  return names;
}

std::string local_time() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  localtime_r(&now, &parts);
  std::array<char, 32> text{};
  const std::size_t size = std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M", &parts);
  return {text.data(), size};
}

// Returns the number of cores that have these CPUs as their threads; 0 if the kernel does not tell.
int number_of_cores(const std::vector<int>& cpus) {
  std::set<std::string> cores;
  for (const int cpu : cpus) {
    std::ifstream file(
        fmt::format("/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list", cpu));
    std::string threads;
    if (!std::getline(file, threads)) return 0;
    cores.insert(threads);
  }
  return static_cast<int>(cores.size());
}

// Returns text such as "4 GPUs (NVIDIA H200)", or "no GPU".
std::string gpu_words(const std::vector<std::string>& gpus) {
  if (gpus.empty()) return "no GPU";
  std::map<std::string, int> counts;
  for (const std::string& gpu : gpus) ++counts[gpu];
  std::vector<std::string> words;
  for (const auto& [name, count] : counts) {
    words.push_back(fmt::format("{} ({})", count_text(count, "GPU"), name));
  }
  return listed(words);
}

int threads_of_worker(const Comparison& comparison, const ComparedVariant& variant) {
  return variant.threads_per_worker.value_or(comparison.threads_per_worker);
}

// Returns the CPUs of the smallest machine. There must be at least one machine.
int fewest_cpus(const Comparison& comparison) {
  return std::ranges::min_element(comparison.machines, {}, &Machine::cpus)->cpus;
}

}  // namespace

Machine machine_here() {
  return {.host = own_host_name(),
          .processor = processor_name(),
          .cpus = usable_cpu_count(),
          .cores = number_of_cores(usable_cpus()),
          .gpus = gpus_here(),
          .version = std::string(program_version()),
          .commit = std::string(program_commit()),
          .instruction_set = std::string(name(detect_isa())),
          .onednn = cpu_library_versions().front().loaded,
          .date = local_time()};
}

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "";
}

std::string describe(const Machine& machine) {
  const bool shares_cores = 0 < machine.cores && machine.cores < machine.cpus;
  std::string program = "syncopate " + machine.version;
  if (!machine.commit.empty()) {
    program += fmt::format(" (commit {}{})", machine.commit,
                           machine.commit.ends_with("-dirty") ? ", with changes to it" : "");
  }
  if (!machine.instruction_set.empty()) program += ", " + machine.instruction_set;
  if (!machine.onednn.empty()) program += ", oneDNN " + machine.onednn;
  return fmt::format("{}: {}{}{}, {}; {}, {}", machine.host, count_text(machine.cpus, "CPU"),
                     shares_cores ? " on " + count_text(machine.cores, "core") : "",
                     machine.processor.empty() ? "" : fmt::format(" ({})", machine.processor),
                     gpu_words(machine.gpus), program, machine.date);
}

int count_machines(const Comparison& comparison) {
  std::vector<Machine> distinct;
  for (Machine machine : comparison.machines) {
    machine.commit.clear();
    machine.date.clear();
    if (std::ranges::find(distinct, machine) == distinct.end()) distinct.push_back(machine);
  }
  return static_cast<int>(distinct.size());
}

std::optional<CpuUse> cpu_use(const Comparison& comparison) {
  const bool is_known = !comparison.machines.empty() && comparison.threads_per_worker > 0;
  if (!is_known || comparison.variants.empty() || comparison.has_virtual_clock) return std::nullopt;
  const auto threads = [&](const ComparedVariant& variant) {
    return threads_of_worker(comparison, variant);
  };
  const ComparedVariant& most =
      *std::ranges::max_element(comparison.variants, {}, [&](const ComparedVariant& variant) {
        return std::pair(variant.workers * threads(variant), variant.workers);
      });
  const int cpus = fewest_cpus(comparison);
  const bool is_shared = most.workers * threads(most) > cpus;
  const bool has_replicas = std::ranges::any_of(
      comparison.variants, [](const auto& one) { return one.workers > 1 && !one.is_distributed; });
  const int servers = std::ranges::max(comparison.variants, {}, &ComparedVariant::servers).servers;
  return CpuUse{fmt::format("{} of {} {} {}{}",
                            has_replicas ? fmt::format("{} workers or replicas", most.workers)
                                         : count_text(most.workers, "worker"),
                            count_text(threads(most), "thread"), is_shared ? "shared" : "had",
                            count_text(cpus, "CPU"),
                            servers == 0 ? ""
                                         : fmt::format(" (with {}, where there are servers)",
                                                       count_text(servers, "server"))),
                is_shared};
}

}  // namespace syncopate::bench
