#include "deploy/cli/link_options.h"

#include <CLI/CLI.hpp>

#include "models/base/errors.h"
#include "models/base/flag_values.h"
#include "models/base/formatted.h"

namespace syncopate {
namespace {

constexpr double kLongestDelay = 60.0;  // seconds
constexpr double kLowestRate = 1000.0;  // bytes per second
constexpr double kHighestRate = 1000.0e9;

// The one that was given, as it was given.
std::string said(const LinkFlags& flags) {
  return flags.delay.empty() ? "--link-rate " + flags.rate : "--link-delay " + flags.delay;
}

}  // namespace

void add_link_flags(CLI::App& app, LinkFlags& flags) {
  const std::string group = "Who takes part";
  app.add_option("--link-delay", flags.delay,
                 "slow links on purpose: so much later come gradients and values, one way, over "
                 "TCP, such as 1ms; meeting and heartbeats are not slowed")
      ->group(group);
  app.add_option("--link-rate", flags.rate,
                 "the same: of each task's link, each way, such as 1gbit, 100mbit or 50mb (bytes)")
      ->group(group);
}

Link link_of(const LinkFlags& flags) {
  Link link;
  if (!flags.delay.empty()) link.delay_seconds = parse_seconds(flags.delay, "--link-delay");
  if (!flags.rate.empty()) link.bytes_per_second = parse_rate(flags.rate, "--link-rate");
  if (link.delay_seconds > kLongestDelay) {
    throw UsageError("--link-delay " + flags.delay + ": expected at most 60s");
  }
  const bool is_out_of_range =
      link.bytes_per_second < kLowestRate || link.bytes_per_second > kHighestRate;
  if (!flags.rate.empty() && is_out_of_range) {
    throw UsageError("--link-rate " + flags.rate + ": expected 1kb to 1000gb (bytes per second)");
  }
  return link;
}

void check_link(const LinkFlags& flags, StrategyOptions& options) {
  options.link = link_of(flags);
  if (options.link.is_plain()) return;
  const bool has_ring = options.name == "multi-worker-mirrored";
  if (!has_ring && options.name != "parameter-server") {
    throw UsageError(said(flags) + ": --strategy " + options.name +
                     " is one process and has no links; leave it out, or choose "
                     "multi-worker-mirrored or parameter-server");
  }
  if (has_ring && options.collective != "auto" && options.collective != "ring") {
    throw UsageError(said(flags) + ": the links of --collective " + options.collective +
                     " are not ours to slow; choose ring");
  }
  if (options.transport == Transport::kShm) {
    throw UsageError(said(flags) +
                     ": shared memory has no links; leave --transport shm out, or choose tcp");
  }
  options.transport = Transport::kTcp;
}

}  // namespace syncopate
