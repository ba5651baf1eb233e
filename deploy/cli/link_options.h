// The flags that make a task's link to the others slow on purpose: of `train` and of `serve`.
#pragma once

#include <string>

#include "ps/net/link.h"
#include "strategies/strategy.h"

namespace CLI {
class App;
}

namespace syncopate {

struct LinkFlags {
  std::string delay;  // "": none
  std::string rate;   // "": without limit
};

// --link-delay, --link-rate, in the group "Who takes part".
void add_link_flags(CLI::App& app, LinkFlags& flags);

// Throws UsageError.
Link link_of(const LinkFlags& flags);

// Fills options.link; on a link that is not plain, TCP is what --transport auto means. Throws
// UsageError where nothing would go through it.
void check_link(const LinkFlags& flags, StrategyOptions& options);

}  // namespace syncopate
