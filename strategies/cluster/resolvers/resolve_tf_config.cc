// Reads TF_CONFIG: JSON that describes a cluster to TensorFlow's tasks.
// Source: tf.distribute.cluster_resolver.TFConfigClusterResolver and multi_worker_util.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "models/base/errors.h"
#include "strategies/cluster/resolvers/launcher_variables.h"
#include "strategies/cluster/resolvers/resolvers.h"

namespace syncopate {
namespace {

using Json = nlohmann::json;
using Jobs = std::map<std::string, std::vector<Endpoint>, std::less<>>;

constexpr std::array<std::string_view, 4> kTypes = {"chief", "worker", "ps", "evaluator"};

[[noreturn]] void refuse_config(const std::string& why) { throw UsageError("TF_CONFIG: " + why); }

void require_type(const std::string& type, const std::string& where) {
  if (std::find(kTypes.begin(), kTypes.end(), type) != kTypes.end()) return;
  refuse_config(where + " has the task type '" + type +
                "'; expected one of chief, worker, ps, evaluator");
}

Json parse_object(const std::string& text) {
  const Json parsed = Json::parse(text, nullptr, false);
  if (parsed.is_object()) return parsed;
  refuse_config(
      "expected a JSON object such as {\"cluster\": {\"worker\": [\"HOST:PORT\"]}, \"task\": "
      "{\"type\": \"worker\", \"index\": 0}}, found " +
      (!parsed.is_discarded()                 ? std::string(parsed.type_name())
       : text.find('\'') != std::string::npos ? "text with ' where JSON has \""
                                              : "text that is not JSON"));
}

// Returns the name of an entry for messages, such as "cluster.worker[2]".
std::string position(const std::string& job, const std::string& key) {
  return job + "[" + key + "]";
}

// The addresses of one job: a list, or a map from index to address.
std::vector<Endpoint> parse_job(const std::string& type, const Json& value) {
  const std::string where = "cluster." + type;
  if (!value.is_array() && !value.is_object()) {
    refuse_config(where + ": expected a list of \"HOST:PORT\" or a map from index to it");
  }
  std::vector<Endpoint> tasks(value.size());
  std::set<int> indices;
  int next = 0;
  for (const auto& [key, address] : value.items()) {
    const std::string name = "TF_CONFIG: " + position(where, key);
    const int most = static_cast<int>(tasks.size()) - 1;
    // The keys of a map with n entries must be 0 to n - 1. If one is missing, another one is out of
    // this range or comes twice, as "1" and "01".
    const int index = value.is_array() ? next : number_within(name, key, 0, most);
    if (!address.is_string()) refuse_config(position(where, key) + ": expected \"HOST:PORT\"");
    if (!indices.insert(index).second) refuse_config(position(where, key) + " comes twice");
    tasks[static_cast<std::size_t>(index)] = parse_endpoint(address.get<std::string>(), name);
    ++next;
  }
  return tasks;
}

Jobs parse_jobs(const Json& cluster) {
  if (!cluster.is_object()) refuse_config("cluster: expected a map from task type to addresses");
  Jobs jobs;
  std::set<std::string> seen;
  for (const auto& [type, value] : cluster.items()) {
    require_type(type, "cluster");
    std::vector<Endpoint>& tasks = jobs[type] = parse_job(type, value);
    if ((type == "chief" || type == "evaluator") && tasks.size() > 1) {
      refuse_config(
          fmt::format("cluster.{} has {} tasks; expected at most one", type, tasks.size()));
    }
    for (const Endpoint& task : tasks) {
      const std::string address = to_string(task);
      if (!seen.insert(address).second)
        refuse_config("cluster has the address " + address + " twice");
    }
  }
  return jobs;
}

// Reads a whole number, given as a JSON number or as text with a number in it.
int parse_index(const Json& task) {
  const auto found = task.find("index");
  if (found == task.end()) refuse_config("task has no index; expected a whole number from 0");
  const std::string text = found->is_string() ? found->get<std::string>() : found->dump();
  return number_within("TF_CONFIG: task.index", text, 0, kMostTasks);
}

// Notes the keys that this resolver does not read, such as TensorFlow's "rpc_layer".
void note_other_keys(const Json& config, Notes& notes) {
  std::string others;
  for (const auto& [key, value] : config.items()) {
    if (key != "cluster" && key != "task") others += (others.empty() ? "" : ", ") + key;
  }
  if (!others.empty()) notes.push_back("TF_CONFIG: ignored in it: " + others);
}

struct Task {
  std::string type;
  int index = 0;  // number of the task among the tasks of its type
};

const std::vector<Endpoint>& tasks_of(const Jobs& jobs, std::string_view type) {
  static const std::vector<Endpoint> kNone;
  const auto found = jobs.find(type);
  return found == jobs.end() ? kNone : found->second;
}

Task parse_task(const Json& task, const Jobs& jobs) {
  const auto type = task.find("type");
  if (type == task.end() || !type->is_string()) {
    refuse_config("task has no type; expected one of chief, worker, ps, evaluator");
  }
  const Task mine{*type, parse_index(task)};
  require_type(mine.type, "task");
  const int listed = static_cast<int>(tasks_of(jobs, mine.type).size());
  // The evaluator is no part of the training cluster and need not be listed.
  if (mine.index < listed || (mine.type == "evaluator" && mine.index == 0)) return mine;
  refuse_config(
      fmt::format("this task is {} {}, but cluster lists {} of that type; indices start at 0",
                  mine.type, mine.index, listed));
}

// The chief is rank 0 and the workers follow; without a chief, worker 0 is rank 0.
ClusterSpec spec_of(const Jobs& jobs, const Task& mine) {
  ClusterSpec spec;
  spec.workers = tasks_of(jobs, "chief");
  const int first_worker = static_cast<int>(spec.workers.size());
  const std::vector<Endpoint>& workers = tasks_of(jobs, "worker");
  spec.workers.insert(spec.workers.end(), workers.begin(), workers.end());
  spec.servers = tasks_of(jobs, "ps");
  if (spec.workers.empty())
    refuse_config("cluster lists no chief and no worker, so there is no task to train");
  spec.world_size = static_cast<int>(spec.workers.size());
  spec.num_servers = static_cast<int>(spec.servers.size());
  if (mine.type == "ps") spec.role = Role::kServer;
  if (mine.type == "evaluator") spec.role = Role::kEvaluator;
  spec.index = mine.type == "worker" ? first_worker + mine.index : mine.index;
  if (spec.num_servers > 0) {
    spec.rendezvous.endpoint = spec.servers.front();
  } else if (spec.world_size > 1) {
    spec.rendezvous.endpoint = spec.workers.front();
  }
  return spec;
}

}  // namespace

std::optional<ClusterSpec> resolve_tf_config(const ClusterFlags& /*unused*/,
                                             const Environment& environment, Notes& notes) {
  const std::optional<std::string> text = filled(environment, "TF_CONFIG");
  if (!text) return std::nullopt;
  const Json config = parse_object(*text);
  note_other_keys(config, notes);
  const Json cluster = config.value("cluster", Json::object());
  const Json task = config.value("task", Json::object());
  if (!task.is_object()) refuse_config("task: expected {\"type\": ..., \"index\": ...}");
  if (cluster.empty() || task.empty()) {
    if (cluster.empty() && task.empty()) return std::nullopt;
    notes.push_back(std::string("TF_CONFIG: ignored, it is incomplete: it has no ") +
                    (cluster.empty() ? "cluster" : "task"));
    return std::nullopt;
  }

  const Jobs jobs = parse_jobs(cluster);
  return spec_of(jobs, parse_task(task, jobs));
}

}  // namespace syncopate
