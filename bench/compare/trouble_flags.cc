#include "bench/compare/trouble_flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "deploy/cli/link_options.h"
#include "models/base/errors.h"

namespace syncopate::bench {
namespace {

// launch starts those that were killed again, all in the same way.
void require_restarts_alike(const std::vector<Kill>& kills) {
  const auto is_other = [&](const Kill& kill) {
    return kill.restart_seconds != kills.front().restart_seconds;
  };
  if (std::ranges::any_of(kills, is_other)) {
    throw UsageError(
        "--kill: in real runs all workers that are killed come back after the same time, or none "
        "does; give each the same restart=, or choose --clock virtual");
  }
}

// Trouble of a worker that no variant has would do nothing, and be told of all the same.
void require_somebody_is_meant(const CompareOptions& options) {
  int most = 0;
  for (const Variant& variant : options.variants) {
    most = std::max(most, places_of(variant.workers, options.trouble.joins));
  }
  for (std::size_t i = 0; i + 1 < options.trouble_words.size(); i += 2) {
    const std::string& flag = options.trouble_words[i];
    const std::string& word = options.trouble_words[i + 1];
    if (worker_of_trouble(flag, word).value_or(0) < most) continue;
    throw UsageError(flag + " " + word + ": no variant has such a worker; expected 0 to " +
                     std::to_string(most - 1) + ", or more --workers");
  }
}

}  // namespace

void TroubleFlags::declare(CLI::App& app) {
  const std::string group = "Trouble on purpose, the same for every variant";
  app.add_option("--service-time", service_time_,
                 "of a step: constant:MS | exponential:MS | lognormal:MS[:SIGMA]; slept in real "
                 "runs, all the time there is in virtual ones (constant:1 there)")
      ->group(group);
  const auto add_repeated = [&](const char* flag, std::vector<std::string>& texts,
                                const char* help) {
    app.add_option(flag, texts, std::string(help) + "; repeat for more")
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
        ->allow_extra_args(false)
        ->group(group);
  };
  add_repeated("--slow", slow_, "worker=W,factor=F");
  add_repeated("--pause", pauses_, "worker=W,at=S,for=S");
  add_repeated("--kill", kills_,
               "worker=W,at=S[,restart=S]: SIGKILL at S since training began; without restart it "
               "stays away");
  add_repeated("--join", joins_, "worker=W,at=S: it comes later, to servers under async or ssp");
  app.add_option("--link-delay", link_delay_,
                 "of what tasks send each other, one way, such as 1ms; in real runs over TCP, and "
                 "strategies of one process have no links")
      ->group(group);
  app.add_option("--link-rate", link_rate_, "of each task, each way, such as 1gbit")->group(group);
}

void TroubleFlags::apply(CompareOptions& options) const {
  Trouble& trouble = options.trouble;
  const bool is_virtual = options.clock == Clock::kVirtual;
  const auto say = [&](const std::string& flag, const std::string& word) {
    options.trouble_words.push_back(flag);
    options.trouble_words.push_back(word);
  };
  std::string service_time = service_time_;
  if (service_time.empty() && is_virtual && trouble.service_time.kind == ServiceTimeKind::kNone) {
    service_time = "constant:1";  // without any, all would happen at once
  }
  if (!service_time.empty()) {
    trouble.service_time = parse_service_time(service_time, "--service-time");
    if (is_virtual && trouble.service_time.mean_milliseconds <= 0.0) {
      throw UsageError("--service-time " + service_time +
                       ": under the virtual clock all would happen at once; give more than 0 ms");
    }
    const auto experiments = std::ranges::find(options.trouble_words, "--service-time");
    if (experiments != options.trouble_words.end()) {
      options.trouble_words.erase(experiments, experiments + 2);
    }
    say("--service-time", service_time);
  }
  for (const std::string& word : slow_) {
    trouble.slow.push_back(parse_slowness(word));
    say("--slow", word);
  }
  for (const std::string& word : pauses_) {
    trouble.pauses.push_back(parse_pause(word));
    say("--pause", word);
  }
  for (const std::string& word : kills_) {
    trouble.kills.push_back(parse_kill(word));
    say("--kill", word);
  }
  if (!is_virtual) require_restarts_alike(trouble.kills);
  for (const std::string& word : joins_) {
    trouble.joins.push_back(parse_join(word));
    say("--join", word);
  }
  trouble.link = link_of({.delay = link_delay_, .rate = link_rate_});
  if (!link_delay_.empty()) say("--link-delay", link_delay_);
  if (!link_rate_.empty()) say("--link-rate", link_rate_);
  require_somebody_is_meant(options);
}

}  // namespace syncopate::bench
