// The commands of syncopate-bench: each declares its flags and returns what to do once they are
// parsed.
#pragma once

#include <functional>
#include <string_view>

#include "deploy/cli/flag_set.h"
#include "models/base/environment.h"

namespace syncopate::bench {

using Command = std::function<void()>;

struct CommandRow {
  std::string_view name;
  std::string_view help;  // empty: a command that only syncopate-bench itself starts
  // The options are kept in the Command.
  Command (*declare)(FlagSet& flags, const Environment& environment);
};

Command declare_step(FlagSet& flags, const Environment& environment);  // bench/step/step_command.cc
// bench/step/input_command.cc
Command declare_input(FlagSet& flags, const Environment& environment);
// bench/all_reduce/all_reduce_command.cc; `-rank`: one process of it
Command declare_all_reduce(FlagSet& flags, const Environment& environment);
Command declare_all_reduce_rank(FlagSet& flags, const Environment& environment);
// bench/ps/ps_command.cc; `-rank`: one process of ours
Command declare_ps(FlagSet& flags, const Environment& environment);
Command declare_ps_rank(FlagSet& flags, const Environment& environment);
// bench/compare/compare_command.cc
Command declare_compare(FlagSet& flags, const Environment& environment);
Command declare_report(FlagSet& flags, const Environment& environment);
Command declare_plan(FlagSet& flags, const Environment& environment);  // bench/plan/plan_command.cc
// bench/scaling/scaling_command.cc
Command declare_scaling(FlagSet& flags, const Environment& environment);
Command declare_scaling_rank(FlagSet& flags, const Environment& environment);

}  // namespace syncopate::bench
