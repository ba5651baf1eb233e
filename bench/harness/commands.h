// The subcommands of syncopate-bench: each declares its options and returns what to do once they
// are parsed.
#pragma once

#include <functional>
#include <string_view>

#include "models/base/environment.h"

namespace CLI {
class App;
}

namespace syncopate::bench {

using Command = std::function<void()>;

struct CommandRow {
  std::string_view name;
  std::string_view help;  // empty: not for people, and not shown to them
  // The parsed options live in the Command.
  Command (*declare)(CLI::App& options, const Environment& environment);
};

Command declare_step(CLI::App& app, const Environment& environment);  // bench/step/step_command.cc
Command declare_input(CLI::App& app,
                      const Environment& environment);  // bench/step/input_command.cc
// bench/all_reduce/all_reduce_command.cc; `-rank`: one process of it
Command declare_all_reduce(CLI::App& app, const Environment& environment);
Command declare_all_reduce_rank(CLI::App& app, const Environment& environment);
// bench/ps/ps_command.cc; `-rank`: one process of ours
Command declare_ps(CLI::App& app, const Environment& environment);
Command declare_ps_rank(CLI::App& app, const Environment& environment);
// bench/compare/compare_command.cc
Command declare_compare(CLI::App& app, const Environment& environment);
Command declare_report(CLI::App& app, const Environment& environment);
Command declare_plan(CLI::App& app, const Environment& environment);  // bench/plan/plan_command.cc
// bench/scaling/scaling_command.cc
Command declare_scaling(CLI::App& app, const Environment& environment);
Command declare_scaling_rank(CLI::App& app, const Environment& environment);

}  // namespace syncopate::bench
