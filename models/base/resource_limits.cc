#include "models/base/resource_limits.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/affinity.h"

namespace syncopate {
namespace {

namespace fs = std::filesystem;

// Returns the first numbers in a file; none for a file that does not exist or says "max".
std::vector<double> numbers_in(const fs::path& file) {
  std::ifstream in(file);
  std::vector<double> numbers;
  for (double number = 0.0; in >> number;) numbers.push_back(number);
  return numbers;
}

// Returns the folders of a controller's cgroups that this process is in, from its own up. A limit
// of each holds. In a container the path of the cgroup may be that of the host, which is not there.
std::vector<fs::path> cgroups(const fs::path& root, std::string_view controller) {
  std::vector<fs::path> folders;
  std::ifstream lines(root / "proc/self/cgroup");
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    std::string id;
    std::string controllers;
    std::string path;
    std::getline(fields, id, ':');
    std::getline(fields, controllers, ':');
    std::getline(fields, path);
    if (path.empty() || path.front() != '/') continue;
    const bool is_unified = controllers.empty();
    std::istringstream names(controllers);
    bool has_controller = is_unified;
    for (std::string name; std::getline(names, name, ',');) {
      has_controller = has_controller || name == controller;
    }
    if (!has_controller) continue;
    const fs::path top = root / "sys/fs/cgroup" / (is_unified ? "" : controllers);
    for (fs::path own = fs::path(path).relative_path(); !own.empty(); own = own.parent_path()) {
      folders.push_back(top / own);
    }
    folders.push_back(top);
  }
  return folders;
}

// Returns the least of some limits.
template <typename T>
std::optional<T> least(std::optional<T> one, T other) {
  return one ? std::min(*one, other) : other;
}

}  // namespace

std::optional<double> cgroup_cpus(const fs::path& root) {
  std::optional<double> cpus;
  for (const fs::path& folder : cgroups(root, "cpu")) {
    std::vector<double> quota = numbers_in(folder / "cpu.max");  // quota and period
    if (quota.empty()) {
      quota = numbers_in(folder / "cpu.cfs_quota_us");  // -1: no limit
      const std::vector<double> period = numbers_in(folder / "cpu.cfs_period_us");
      quota.insert(quota.end(), period.begin(), period.end());
    }
    if (quota.size() == 2 && quota[0] > 0.0 && quota[1] > 0.0) {
      cpus = least(cpus, quota[0] / quota[1]);
    }
  }
  return cpus;
}

std::int64_t available_memory(const fs::path& root) {
  std::optional<double> bytes;
  std::ifstream lines(root / "proc/meminfo");
  for (std::string line; std::getline(lines, line);) {
    constexpr std::string_view kName = "MemAvailable:";
    if (line.starts_with(kName)) bytes = 1024.0 * std::atof(line.c_str() + kName.size());
  }
  for (const fs::path& folder : cgroups(root, "memory")) {
    std::vector<double> limit = numbers_in(folder / "memory.max");
    std::vector<double> used = numbers_in(folder / "memory.current");
    if (limit.empty()) {
      limit = numbers_in(folder / "memory.limit_in_bytes");
      used = numbers_in(folder / "memory.usage_in_bytes");
    }
    if (limit.size() == 1 && used.size() == 1) {
      bytes = least(bytes, std::max(0.0, limit[0] - used[0]));
    }
  }
  return static_cast<std::int64_t>(bytes.value_or(0.0));
}

int usable_cpu_count() {
  const auto cpus = static_cast<double>(usable_cpus().size());
  return std::max(1, static_cast<int>(std::ceil(std::min(cpus, cgroup_cpus().value_or(cpus)))));
}

}  // namespace syncopate
