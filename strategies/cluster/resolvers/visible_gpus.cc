#include "strategies/cluster/resolvers/visible_gpus.h"

#include <algorithm>
#include <numeric>
#include <sstream>

#include "models/base/parse_number.h"
#include "strategies/cluster/resolvers/launcher_variables.h"

namespace syncopate {
namespace {

std::vector<int> indices_from(int first, int count) {
  std::vector<int> mine(static_cast<std::size_t>(count));
  std::iota(mine.begin(), mine.end(), first);
  return mine;
}

}  // namespace

std::optional<std::vector<std::string>> visible_gpus(const Environment& environment) {
  const std::optional<std::string> text = environment.get("CUDA_VISIBLE_DEVICES");
  if (!text) return std::nullopt;
  std::vector<std::string> names;
  if (*text == "NoDevFiles" || *text == "-1") return names;
  std::istringstream list(*text);
  for (std::string name; std::getline(list, name, ',');) names.push_back(name);
  return names;
}

std::vector<int> choose_gpus(const Environment& environment, int local_rank, int most_tasks) {
  const int visible =
      static_cast<int>(visible_gpus(environment).value_or(std::vector<std::string>{}).size());
  // Parses Slurm's number of GPUs: "2", or with a kind "a100:2".
  const std::string per_task = filled(environment, "SLURM_GPUS_PER_TASK").value_or("");
  const bool bound =
      visible == 1 || per_task.substr(per_task.rfind(':') + 1) == std::to_string(visible);
  if (bound || visible == 0) return indices_from(0, visible);
  return deal_out_gpus(visible, local_rank, most_tasks);
}

bool sees_part_of_node(const Environment& environment) {
  const auto visible = visible_gpus(environment);
  if (!visible || visible->empty()) return false;
  const std::string text = filled(environment, "SLURM_GPUS_ON_NODE").value_or("");
  return parse_number<std::size_t>(text).value_or(0) > visible->size();
}

std::vector<int> deal_out_gpus(int visible, int local_rank, int most_tasks) {
  const int each = visible / most_tasks;
  if (each == 0) return {local_rank % visible};
  return indices_from(local_rank % most_tasks * each, each);
}

GpuShare share_of_gpus(std::span<const SeenGpus> tasks, std::size_t mine) {
  const std::vector<std::string>& seen = tasks[mine].bus_ids;
  const SeenGpus* first = nullptr;  // all tasks use this task's order of GPUs
  int place = 0;
  GpuShare share{.tasks = 0};
  for (std::size_t task = 0; task < tasks.size(); ++task) {
    if (tasks[task].machine != tasks[mine].machine) continue;
    if (!std::ranges::is_permutation(tasks[task].bus_ids, seen)) continue;
    if (first == nullptr) first = &tasks[task];
    if (task == mine) place = share.tasks;
    ++share.tasks;
  }
  for (const int gpu : deal_out_gpus(static_cast<int>(seen.size()), place, share.tasks)) {
    const auto found = std::ranges::find(seen, first->bus_ids[static_cast<std::size_t>(gpu)]);
    share.gpus.push_back(static_cast<int>(found - seen.begin()));
  }
  return share;
}

}  // namespace syncopate
