// Declares the commands of syncopate-bench. Each function declares the flags of its command and
// returns the function that runs the command once the flags are parsed.
#pragma once

#include <functional>
#include <string_view>

#include "deploy/cli/flag_set.h"
#include "models/base/environment.h"

namespace syncopate::bench {

using Command = std::function<void()>;

struct CommandRow {
  std::string_view name;
  std::string_view help;  // Is empty for a command that only syncopate-bench itself starts.
  // Declares the flags. The returned Command owns the options.
  Command (*declare)(FlagSet& flags, const Environment& environment);
};

// Defined in bench/step/step_command.cc.
Command declare_step(FlagSet& flags, const Environment& environment);
// Defined in bench/step/input_command.cc.
Command declare_input(FlagSet& flags, const Environment& environment);
// Both are defined in bench/all_reduce/all_reduce_command.cc; `-rank` runs one rank.
Command declare_all_reduce(FlagSet& flags, const Environment& environment);
Command declare_all_reduce_rank(FlagSet& flags, const Environment& environment);
// Both are defined in bench/ps/ps_command.cc; `-rank` runs one process of our side.
Command declare_ps(FlagSet& flags, const Environment& environment);
Command declare_ps_rank(FlagSet& flags, const Environment& environment);
// Both are defined in bench/compare/compare_command.cc.
Command declare_compare(FlagSet& flags, const Environment& environment);
Command declare_report(FlagSet& flags, const Environment& environment);
// Defined in bench/plan/plan_command.cc.
Command declare_plan(FlagSet& flags, const Environment& environment);
// Both are defined in bench/scaling/scaling_command.cc; `-rank` runs one rank.
Command declare_scaling(FlagSet& flags, const Environment& environment);
Command declare_scaling_rank(FlagSet& flags, const Environment& environment);

}  // namespace syncopate::bench
