#include "strategies/cluster/visible_gpus.h"

#include <numeric>
#include <sstream>

#include "strategies/cluster/source_variables.h"

namespace syncopate {
namespace {

std::vector<int> from(int first, int count) {
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
  // "2", or with a kind "a100:2".
  const std::string per_task = filled(environment, "SLURM_GPUS_PER_TASK").value_or("");
  const bool bound =
      visible == 1 || per_task.substr(per_task.rfind(':') + 1) == std::to_string(visible);
  const int each = bound ? visible : visible / most_tasks;
  const int first = bound ? 0 : local_rank * each;
  if (first + each > visible) return {};
  return from(first, each);
}

std::vector<int> deal_out_gpus(int visible, int local_rank, int most_tasks) {
  const int each = visible / most_tasks;
  return each == 0 ? std::vector{local_rank % visible} : from(local_rank * each, each);
}

}  // namespace syncopate
