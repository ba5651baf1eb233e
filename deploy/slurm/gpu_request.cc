#include "deploy/slurm/gpu_request.h"

#include <algorithm>
#include <charconv>
#include <sstream>
#include <vector>

namespace syncopate {
namespace {

std::vector<std::string> split_at(char separator, std::string_view text) {
  std::vector<std::string> parts;
  std::istringstream items{std::string(text)};
  for (std::string item; std::getline(items, item, separator);) parts.push_back(item);
  return parts;
}

// Returns the number at the beginning of the text; nothing if there is none.
std::optional<int> leading_number(std::string_view text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return std::nullopt;
  return number;
}

struct GpuCount {
  int count = 0;
  std::string type;
};

// Returns the GPUs of a list such as "scratch:10,gpu:a100:4(S:0-1)", or of "a100:4" where the list
// has nothing but GPUs.
GpuCount count_in(std::string_view list, bool has_gpus_only) {
  GpuCount gpus;
  for (const std::string& item : split_at(',', list)) {
    std::vector<std::string> words = split_at(':', item.substr(0, item.find('(')));
    if (!has_gpus_only) {
      if (words.empty() || words.front() != "gpu") continue;
      words.erase(words.begin());
    }
    int count = 1;
    if (!words.empty()) {
      if (const std::optional<int> number = leading_number(words.back())) {
        count = std::max(*number, 1);
        words.pop_back();
      }
    }
    if (!words.empty()) gpus.type = words.front();
    gpus.count += count;
  }
  return gpus;
}

// Returns the value of NAME=VALUE in a line of scontrol; empty if the line has no such word.
std::string_view field_of(std::string_view line, std::string_view name) {
  const std::string beginning = std::string(" ") + std::string(name) + "=";
  const std::size_t at = line.find(beginning);
  if (at == std::string_view::npos) return "";
  const std::string_view rest = line.substr(at + beginning.size());
  return rest.substr(0, rest.find(' '));
}

}  // namespace

int GpuRequest::of_node(int nodes, int tasks_per_node) const noexcept {
  if (per_node > 0) return per_node;
  if (per_task > 0) return per_task * std::max(tasks_per_node, 1);
  return in_job / std::max(nodes, 1);
}

GpuRequest requested_gpus(const SbatchOptions& options) {
  GpuRequest request;
  for (const auto* list : {&options.resources, &options.other_options}) {
    for (const auto& [name, value] : *list) {
      if (name != "gres" && !name.starts_with("gpus")) continue;
      const GpuCount gpus = count_in(value, name != "gres");
      if (gpus.count == 0) continue;
      (name == "gpus"            ? request.in_job
       : name == "gpus-per-task" ? request.per_task
                                 : request.per_node) = gpus.count;
      request.type = gpus.type;
    }
  }
  return request;
}

std::optional<int> cpus_per_gpu(std::string_view nodes, std::string_view partitions,
                                std::string_view type, int least_gpus) {
  const std::vector<std::string> wanted = split_at(',', partitions);
  std::optional<int> least;
  for (const std::string& line : split_at('\n', nodes)) {
    const std::vector<std::string> its = split_at(',', field_of(line, "Partitions"));
    const bool is_in_partition =
        wanted.empty() || std::ranges::find_first_of(its, wanted) != its.end();
    const GpuCount gpus = count_in(field_of(line, "Gres"), false);
    const bool has_type = type.empty() || gpus.type.empty() || gpus.type == type;
    if (!is_in_partition || !has_type || gpus.count < std::max(least_gpus, 1)) continue;
    // Slurm 22.05 and newer name the CPUs that jobs may use, without those that are reserved for
    // the system.
    std::optional<int> cpus = leading_number(field_of(line, "CPUEfctv"));
    if (!cpus) cpus = leading_number(field_of(line, "CPUTot"));
    if (!cpus || *cpus < gpus.count) continue;
    least = std::min(least.value_or(*cpus), *cpus / gpus.count);
  }
  return least;
}

}  // namespace syncopate
