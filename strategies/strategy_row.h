// The table behind --strategy: what the rest of the program must know of a strategy before and
// beside a run. A property of a strategy that code elsewhere depends on is a field here.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "models/graph/graph.h"
#include "ps/shard/consistency.h"
#include "strategies/strategy_options.h"

namespace syncopate {

class Strategy;

// The strategies that benchmarks and defaults name.
inline constexpr const char* kOneDevice = "one-device";
inline constexpr const char* kMirrored = "mirrored";
inline constexpr const char* kMultiWorkerMirrored = "multi-worker-mirrored";

struct StrategyRow {
  // The tasks of a job.
  enum class Tasks : std::uint8_t {
    kOne,
    kStages,       // one task, or one for each stage
    kMany,         // tasks that sum gradients with one another
    kWithServers,  // workers, and tasks that are parameter servers
  };
  // Where the variables are.
  enum class Variables : std::uint8_t {
    kDevice,   // on the device of the only replica
    kCopies,   // a copy on the device of each replica
    kHost,     // in host memory, shared by the replicas of the task
    kServers,  // on parameter servers
    kStages,   // each on the stage that uses it
  };

  std::string_view name;
  std::string_view help;
  std::string_view title;       // in a table of results, such as "Sync, all-reduce"
  std::string_view short_name;  // in a sentence, such as "all-reduce"
  Tasks tasks = Tasks::kOne;
  Variables variables = Variables::kDevice;
  std::array<std::string_view, 4> collectives{};  // of --collective, without auto; "" at the end
  // Why a task has one replica, and what to do instead; "" if it may have several.
  std::string_view one_replica = "";
  // The default of --consistency. Only strategies that share variables have others.
  ps::Consistency consistency = ps::Consistency::kSync;
  std::unique_ptr<Strategy> (*make)(const StrategyOptions&, const Graph&) = nullptr;

  bool has_servers() const { return variables == Variables::kServers; }
  bool has_stages() const { return variables == Variables::kStages; }
  // Whether replicas share variables, so that they may be asynchronous.
  bool shares_variables() const { return has_servers() || variables == Variables::kHost; }
  // Whether tasks sum gradients with one another or over servers, and so must meet.
  bool needs_other_tasks() const { return tasks == Tasks::kMany || tasks == Tasks::kWithServers; }
  bool has_replicas() const { return one_replica.empty(); }
  // Whether all replicas of a job are in one task.
  bool has_replicas_of_one_task() const { return tasks == Tasks::kOne && has_replicas(); }
  // Whether the job never has more than one worker.
  bool is_alone() const { return tasks == Tasks::kOne && !has_replicas(); }
  // Whether a job of this number of tasks may use a value of --collective.
  bool takes_collective(std::string_view collective, int number_of_tasks) const;
};
std::span<const StrategyRow> strategies() noexcept;

// Returns the row of a name; null for an unknown one.
const StrategyRow* find_strategy(std::string_view name) noexcept;
// Returns the row of options.name. Throws UsageError for an unknown name, listing the known ones.
const StrategyRow& row_of(const StrategyOptions& options);

}  // namespace syncopate
