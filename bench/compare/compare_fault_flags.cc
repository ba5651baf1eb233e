#include "bench/compare/compare_fault_flags.h"

#include <algorithm>

#include "deploy/cli/fault_flags.h"
#include "models/base/errors.h"

namespace syncopate::bench {
namespace {

// launch restarts all killed workers after the same time.
void require_restarts_alike(const std::vector<Kill>& kills) {
  const auto is_other = [&](const Kill& kill) {
    return kill.restart_seconds != kills.front().restart_seconds;
  };
  if (std::ranges::any_of(kills, is_other)) {
    throw UsageError(
        "--kill: in real runs all killed workers restart after the same time, or none does; give "
        "each the same restart=, or choose --clock virtual");
  }
}

// Refuses a fault of a worker that no variant has: the report would name a fault without effect.
void require_known_workers(const CompareOptions& options) {
  int most = 0;
  for (const Variant& variant : options.variants) {
    most = std::max(most, places_of(variant.workers, options.faults.joins));
  }
  for (std::size_t i = 0; i + 1 < options.fault_flags.size(); i += 2) {
    const std::string& flag = options.fault_flags[i];
    const std::string& word = options.fault_flags[i + 1];
    if (worker_of_fault(flag, word).value_or(0) < most) continue;
    throw UsageError(flag + " " + word + ": expected a worker from 0 to " +
                     std::to_string(most - 1) + ", or more --workers");
  }
}

}  // namespace

void CompareFaultFlags::declare(FlagSet& flags) {
  flags.begin_group("Fault injection, equal for all variants");
  flags.add("--service-time", &service_time_,
            "compute delay of a step in milliseconds: constant:MS | exponential:MS | "
            "lognormal:MS[:SIGMA]; slept in real runs, the whole time of a step in virtual ones",
            {.value = "DELAY", .default_text = "none; with --clock virtual constant:1"});
  flags.add("--slow", &slow_, "factor by which --service-time of worker W is multiplied",
            {.value = "worker=W,factor=F", .repeats = true});
  flags.add("--pause", &pauses_, "one pause of worker W",
            {.value = "worker=W,at=TIME,for=TIME", .repeats = true});
  flags.add("--kill", &kills_,
            "SIGKILL of worker W after the start of training; without restart it stays away",
            {.value = "worker=W,at=TIME[,restart=TIME]", .repeats = true});
  flags.add("--join", &joins_, "later start of worker W, with servers under async or ssp",
            {.value = "worker=W,at=TIME", .repeats = true});
  flags.add("--link-delay", &link_delay_,
            "delay of messages between tasks, one way, such as 1ms; real runs use TCP, and "
            "strategies of one process have no links",
            {.value = "TIME", .default_text = "none"});
  flags.add("--link-rate", &link_rate_, "rate of each task's link, each way, such as 1gbit",
            {.value = "RATE", .default_text = "unlimited"});
}

void CompareFaultFlags::apply(CompareOptions& options) const {
  FaultInjection& faults = options.faults;
  const bool is_virtual = options.clock == Clock::kVirtual;
  const auto keep_words = [&](const std::string& flag, const std::string& word) {
    options.fault_flags.push_back(flag);
    options.fault_flags.push_back(word);
  };
  std::string service_time = service_time_;
  if (service_time.empty() && is_virtual && faults.service_time.kind == ServiceTimeKind::kNone) {
    service_time = "constant:1";  // without a delay all steps would end at time 0
  }
  if (!service_time.empty()) {
    faults.service_time = parse_service_time(service_time, "--service-time");
    if (is_virtual && faults.service_time.mean_milliseconds <= 0.0) {
      throw UsageError(
          "--service-time " + service_time +
          ": under the virtual clock all steps would end at time 0; give more than 0 ms");
    }
    const auto experiments = std::ranges::find(options.fault_flags, "--service-time");
    if (experiments != options.fault_flags.end()) {
      options.fault_flags.erase(experiments, experiments + 2);
    }
    keep_words("--service-time", service_time);
  }
  for (const std::string& word : slow_) {
    faults.slow.push_back(parse_slowness(word));
    keep_words("--slow", word);
  }
  for (const std::string& word : pauses_) {
    faults.pauses.push_back(parse_pause(word));
    keep_words("--pause", word);
  }
  for (const std::string& word : kills_) {
    faults.kills.push_back(parse_kill(word));
    keep_words("--kill", word);
  }
  if (!is_virtual) require_restarts_alike(faults.kills);
  for (const std::string& word : joins_) {
    faults.joins.push_back(parse_join(word));
    keep_words("--join", word);
  }
  faults.link = link_of({.delay = link_delay_, .rate = link_rate_});
  if (!link_delay_.empty()) keep_words("--link-delay", link_delay_);
  if (!link_rate_.empty()) keep_words("--link-rate", link_rate_);
  require_known_workers(options);
}

}  // namespace syncopate::bench
