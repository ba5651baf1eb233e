#include "deploy/cli/fault_flags.h"

#include <fmt/format.h>

#include "models/base/errors.h"
#include "models/base/flag_values.h"
#include "worker/run/run_devices.h"

namespace syncopate {
namespace {

constexpr double kLongestDelay = 60.0;  // of a slow link, in seconds
constexpr double kLowestRate = 1000.0;  // of a slow link, in bytes per second
constexpr double kHighestRate = 1000.0e9;

// Returns a link flag that the user gave, as text for a message, such as "--link-rate 1gbit".
std::string given_flag(const LinkFlags& flags) {
  return flags.delay.empty() ? "--link-rate " + flags.rate : "--link-delay " + flags.delay;
}

}  // namespace

void add_link_flags(FlagSet& flags, LinkFlags& link) {
  flags.begin_group("Fault injection");
  flags.add("--link-delay", &link.delay,
            "delay of gradients and values, one way, over TCP, such as 1ms (a number alone is in "
            "seconds); the rendezvous and heartbeats are not delayed",
            {.value = "TIME", .default_text = "none"});
  flags.add("--link-rate", &link.rate,
            "rate of each task's link, each way, such as 1gbit, 100mbit or 50mb (bytes)",
            {.value = "RATE", .default_text = "unlimited"});
}

void add_fault_flags(FlagSet& flags, FaultFlags& faults) {
  flags.begin_group("Fault injection");
  flags.add("--service-time", &faults.service_time,
            "compute delay, slept in each step, in milliseconds: constant:MS | exponential:MS | "
            "lognormal:MS[:SIGMA]",
            {.value = "DELAY", .default_text = "none"});
  flags.add("--slow", &faults.slow, "factor by which --service-time of worker W is multiplied",
            {.value = "worker=W,factor=F", .repeats = true});
  flags.add("--pause", &faults.pauses,
            "one pause of worker W, at a time after its first step, such as at=20s,for=5s",
            {.value = "worker=W,at=TIME,for=TIME", .repeats = true});
  add_link_flags(flags, faults.link);
}

Link link_of(const LinkFlags& flags) {
  Link link;
  if (!flags.delay.empty()) link.delay_seconds = parse_seconds(flags.delay, "--link-delay");
  if (!flags.rate.empty()) link.bytes_per_second = parse_rate(flags.rate, "--link-rate");
  if (link.delay_seconds > kLongestDelay) {
    throw UsageError(fmt::format("--link-delay {}: expected at most 60s", flags.delay));
  }
  const bool is_out_of_range =
      link.bytes_per_second < kLowestRate || link.bytes_per_second > kHighestRate;
  if (!flags.rate.empty() && is_out_of_range) {
    throw UsageError(
        fmt::format("--link-rate {}: expected 1kb to 1000gb (bytes per second)", flags.rate));
  }
  return link;
}

void check_link(const LinkFlags& flags, StrategyOptions& options) {
  options.link = link_of(flags);
  if (options.link.is_plain()) return;
  const StrategyRow& strategy = row_of(options);
  if (strategy.tasks == StrategyRow::Tasks::kOne) {
    throw UsageError(
        fmt::format("{}: --strategy {} is one process and has no links; leave it out, or choose "
                    "multi-worker-mirrored or parameter-server",
                    given_flag(flags), options.name));
  }
  if (!strategy.has_servers() && options.collective != "auto" && options.collective != "ring") {
    throw UsageError(
        fmt::format("{} requires --collective ring: the library of --collective {} owns its links",
                    given_flag(flags), options.collective));
  }
  if (options.transport == Transport::kShm) {
    throw UsageError(
        fmt::format("{}: shared memory has no links; leave --transport shm out, or choose tcp",
                    given_flag(flags)));
  }
  options.transport = Transport::kTcp;
}

void check_compute_delays(const FlagSet& flags, const FaultFlags& faults, TrainOptions& options) {
  auto& delays = options.loop.service_time;
  if (flags.has("--service-time")) {
    delays = parse_service_time(faults.service_time, "--service-time");
    delays.seed = options.strategy.seed;
  }
  flags.require("--slow", flags.has("--service-time"), "--service-time, which it multiplies");
  for (const std::string& text : faults.slow) delays.slow.push_back(parse_slowness(text));
  for (const std::string& text : faults.pauses) delays.pauses.push_back(parse_pause(text));
  options.loop.first_worker = options.cluster.index * options.strategy.replicas;
  if (!options.takes_every_device) check_delayed_workers(options);
}

}  // namespace syncopate
