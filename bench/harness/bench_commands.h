// Declares the commands of syncopate-bench. Each function declares the flags of its command and
// returns the function that runs the command once the flags are parsed.
#pragma once

#include <functional>
#include <string_view>

#include "deploy/cli/flag_set.h"
#include "models/base/environment.h"

namespace syncopate::bench {

// Limits flags that count rounds, steps or samples; a larger number is a typing error.
inline constexpr double kMostCount = 1'000'000;

using Command = std::function<void()>;

struct CommandRow {
  std::string_view name;
  std::string_view help;  // empty: hidden, because only syncopate-bench starts the command
  // Declares the flags of the command. The returned Command owns the options.
  Command (*declare)(FlagSet& flags, const Environment& environment);
};

// The commands that users run, each defined in the folder of its benchmark.
Command declare_compare(FlagSet& flags, const Environment& environment);
Command declare_report(FlagSet& flags, const Environment& environment);
Command declare_plan(FlagSet& flags, const Environment& environment);
Command declare_step(FlagSet& flags, const Environment& environment);
Command declare_input(FlagSet& flags, const Environment& environment);
Command declare_all_reduce(FlagSet& flags, const Environment& environment);
Command declare_ps(FlagSet& flags, const Environment& environment);
Command declare_scaling(FlagSet& flags, const Environment& environment);
// The hidden commands with which a benchmark starts a process of a program that it measures.
Command declare_scaling_rank(FlagSet& flags, const Environment& environment);
Command declare_all_reduce_rank(FlagSet& flags, const Environment& environment);
Command declare_ps_rank(FlagSet& flags, const Environment& environment);
Command declare_ps_peer_rank(FlagSet& flags, const Environment& environment);

}  // namespace syncopate::bench
