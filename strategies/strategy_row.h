// The table behind --strategy. A row has every property of a strategy on which other code depends,
// such as help texts and limits, so that this code needs no special cases.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "models/graph/graph.h"
#include "ps/shard/consistency.h"
#include "strategies/strategy_options.h"

namespace syncopate {

class Strategy;

struct StrategyRow {
  // Which tasks a job with the strategy has.
  enum class Tasks : std::uint8_t {
    kOne,
    kStages,       // one task, or one task for each stage
    kMany,         // tasks that sum gradients with one another
    kWithServers,  // workers, and tasks that are parameter servers
  };
  // Where the variables are.
  enum class Variables : std::uint8_t {
    kDevice,   // on the device of the only replica
    kCopies,   // a copy on the device of each replica
    kHost,     // in host memory, shared by the replicas of the task
    kServers,  // on parameter servers
    kStages,   // each variable on the stage that uses it
  };

  std::string_view name;
  std::string_view help;
  std::string_view title;       // for a table of results, such as "Sync, all-reduce"
  std::string_view short_name;  // for a sentence, such as "all-reduce"
  Tasks tasks = Tasks::kOne;
  Variables variables = Variables::kDevice;
  // Allowed values of --collective besides auto, in a job of one task and in a job of several.
  std::span<const std::string_view> collectives;
  std::span<const std::string_view> collectives_of_tasks;
  // Why a task can have only one replica, and what the user should do instead; "" if a task may
  // have several replicas.
  std::string_view one_replica = "";
  // Whether replicas train in rounds of --sync-every steps. In a step, a replica updates its own
  // variables by the gradient of its own samples; replicas exchange nothing before the round ends.
  bool has_rounds = false;
  // The default of --consistency. Only strategies with shared variables support other values.
  ps::Consistency consistency = ps::Consistency::kSync;
  std::unique_ptr<Strategy> (*make)(const StrategyOptions&, const Graph&) = nullptr;

  bool has_servers() const { return variables == Variables::kServers; }
  bool has_stages() const { return variables == Variables::kStages; }
  // Returns whether replicas share variables, which allows asynchronous training.
  bool shares_variables() const { return has_servers() || variables == Variables::kHost; }
  // Returns whether the job has several tasks that must meet, because they sum gradients with one
  // another or use servers.
  bool needs_other_tasks() const { return tasks == Tasks::kMany || tasks == Tasks::kWithServers; }
  bool has_replicas() const { return one_replica.empty(); }
  // Returns whether the job has one task, which may have several replicas.
  bool has_replicas_of_one_task() const { return tasks == Tasks::kOne && has_replicas(); }
  // Returns whether the job always has exactly one worker.
  bool is_alone() const { return tasks == Tasks::kOne && !has_replicas(); }
  // Returns the allowed values of --collective besides auto in a job with this number of tasks.
  std::span<const std::string_view> collectives_for(int number_of_tasks) const {
    return number_of_tasks > 1 ? collectives_of_tasks : collectives;
  }
  // Returns whether a job with this number of tasks may use this value of --collective.
  bool takes_collective(std::string_view collective, int number_of_tasks) const;
};
std::span<const StrategyRow> strategies() noexcept;

// Returns the row with this name; null for an unknown name.
const StrategyRow* find_strategy(std::string_view name) noexcept;
// Returns the row with the name options.name. Throws UsageError for an unknown name, with a list of
// the known names.
const StrategyRow& row_of(const StrategyOptions& options);

}  // namespace syncopate
