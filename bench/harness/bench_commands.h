// Declares the commands of syncopate-bench. Each function declare_*() declares the flags of a
// command and returns the function that runs the command after the flags have been parsed.
#pragma once

#include <functional>
#include <string_view>

#include "deploy/cli/flag_set.h"
#include "models/base/environment.h"

namespace syncopate::bench {

// The upper limit of flags that count rounds, steps or samples. A larger number is probably a
// typing error.
inline constexpr double kMostCount = 1'000'000;

using Command = std::function<void()>;

struct CommandRow {
  std::string_view name;
  std::string_view help;  // empty: hidden, because only syncopate-bench itself starts it
  // Declares the flags of the command. The returned Command owns the options that the flags set.
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
// The hidden commands by which a benchmark starts the processes that it measures.
Command declare_scaling_rank(FlagSet& flags, const Environment& environment);
Command declare_all_reduce_rank(FlagSet& flags, const Environment& environment);
Command declare_ps_rank(FlagSet& flags, const Environment& environment);
Command declare_ps_peer_rank(FlagSet& flags, const Environment& environment);

}  // namespace syncopate::bench
