#include "bench/compare/cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <set>
#include <utility>

#include "bench/compare/variant.h"
#include "bench/plots/text.h"
#include "models/base/errors.h"
#include "models/base/flag_values.h"

namespace syncopate::bench {
namespace {

// The links of a cluster without link flags: typical of a data centre.
constexpr const char* kLinkRate = "10gbit";
constexpr const char* kLinkDelay = "50us";

struct NamedCluster {
  std::string_view name;
  std::string_view help;
  std::string_view service_time;  // constant or exponential, of one step
  std::string_view slow_worker;   // as --slow-worker; "" if all workers are equal
  std::string_view link_rate;
  std::string_view link_delay;
};

constexpr std::array kNamedClusters = {
    NamedCluster{"equal", "all workers equally fast, 10 Gbit/s links", "constant", "", kLinkRate,
                 kLinkDelay},
    NamedCluster{"jitter", "exponentially distributed step times, 10 Gbit/s links", "exponential",
                 "", kLinkRate, kLinkDelay},
    NamedCluster{"slow-worker", "one worker 4x slower than the others, 10 Gbit/s links", "constant",
                 "4x", kLinkRate, kLinkDelay},
    NamedCluster{"slow-link", "all workers equally fast, 1 Gbit/s links", "constant", "", "1gbit",
                 "100us"}};

ClusterFlags flags_of(const NamedCluster& row, int workers, double step_milliseconds) {
  ClusterFlags flags{
      .service_time = fmt::format("{}:{}", row.service_time, exact_text(step_milliseconds)),
      .link_delay = std::string(row.link_delay),
      .link_rate = std::string(row.link_rate)};
  if (!row.slow_worker.empty()) {
    flags.slow.push_back(slow_worker(std::string(row.slow_worker), workers));
  }
  return flags;
}

// Splits the text in braces at each comma that begins a flag: values have commas, too.
std::vector<std::pair<std::string, std::string>> split_flags(const std::string& text,
                                                             const std::string& word) {
  std::vector<std::pair<std::string, std::string>> flags;
  constexpr std::array kFlags = {"service-time", "slow-worker", "slow",      "pause", "kill",
                                 "join",         "link-delay",  "link-rate", "costs"};
  const auto begins_flag = [&](const std::string& part) {
    return std::ranges::any_of(
        kFlags, [&](const std::string& flag) { return part.starts_with(flag + "="); });
  };
  std::size_t begin = 0;
  while (begin <= text.size()) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string part = text.substr(begin, end - begin);
    if (begins_flag(part)) {
      const std::size_t equal = part.find('=');
      flags.emplace_back(part.substr(0, equal), part.substr(equal + 1));
    } else if (!flags.empty() && !part.empty()) {
      flags.back().second += "," + part;
    } else {
      throw UsageError(fmt::format(
          "--clusters {}: expected FLAG=VALUE in braces, found \"{}\"; the flags are {}", word,
          part, listed({kFlags.begin(), kFlags.end()})));
    }
    begin = end + 1;
  }
  return flags;
}

// Returns the flags in the braces of `word`, and those of equal workers for the rest.
ClusterFlags own_flags(const std::string& word, int workers, double step_milliseconds) {
  ClusterFlags flags = flags_of(kNamedClusters.front(), workers, step_milliseconds);
  const std::size_t brace = word.find('{');
  const std::string inside = word.substr(brace + 1, word.size() - brace - 2);
  const std::vector<std::pair<std::string, std::string>> given = split_flags(inside, word);
  const auto has_step = [](const auto& one) {
    return one.first == "costs" && has_step_cost(one.second);
  };
  if (std::ranges::any_of(given, has_step)) flags.service_time.clear();
  for (const auto& [flag, value] : given) {
    if (flag == "service-time") flags.service_time = value;
    if (flag == "slow-worker") flags.slow.push_back(slow_worker(value, workers));
    if (flag == "slow") flags.slow.push_back(value);
    if (flag == "pause") flags.pauses.push_back(value);
    if (flag == "kill") flags.kills.push_back(value);
    if (flag == "join") flags.joins.push_back(value);
    if (flag == "link-delay") flags.link_delay = value;
    if (flag == "link-rate") flags.link_rate = value;
    if (flag == "costs") flags.costs = value;
  }
  return flags;
}

// A cluster's name is also the name of its folder.
bool is_cluster_name(const std::string& name) {
  return !name.empty() && name.size() <= 40 && name.front() != '.' &&
         std::ranges::all_of(name, [](unsigned char c) {
           return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
         });
}

std::string names_of_clusters() {
  std::vector<std::string> names;
  for (const NamedCluster& row : kNamedClusters) names.emplace_back(row.name);
  return listed(names);
}

Cluster parse_cluster(const std::string& word, int workers, double step_milliseconds) {
  const auto refuse = [&](const std::string& why) {
    throw UsageError(fmt::format("--clusters {}: {}", word, why));
  };
  const std::size_t brace = word.find('{');
  const std::string name = word.substr(0, brace);
  const auto with = [&](const ClusterFlags& flags) {
    Cluster cluster{.name = name};
    add_flags(cluster, flags);
    return cluster;
  };
  const auto row = std::ranges::find(kNamedClusters, std::string_view(name), &NamedCluster::name);
  if (brace == std::string::npos) {
    if (row == kNamedClusters.end()) {
      refuse(
          fmt::format("expected {}, or a name of your own with flags, as in "
                      "'mine{{slow-worker=4x,link-rate=1gbit}}'",
                      names_of_clusters()));
    }
    return with(flags_of(*row, workers, step_milliseconds));
  }
  if (!word.ends_with('}') || word.size() == brace + 2) {
    refuse("expected flags in braces, as in 'mine{slow-worker=4x,link-rate=1gbit}'");
  }
  if (row != kNamedClusters.end()) refuse(name + " has flags of its own; choose another name");
  if (!is_cluster_name(name)) {
    refuse("expected a name of up to 40 letters, digits, - and _ in front of the brace");
  }
  return with(own_flags(word, workers, step_milliseconds));
}

Fields fields_of_costs(const std::string& costs) {
  constexpr std::array<std::string_view, 4> kFields = {"step", "update", "message", "copy"};
  const auto fields = parse_fields(costs);
  const bool is_known = fields && std::ranges::all_of(*fields, [&](const auto& field) {
                          return std::ranges::find(kFields, field.first) != kFields.end();
                        });
  if (is_known) return *fields;
  throw UsageError(fmt::format(
      "--costs {}: expected step=TIME, update=RATE, message=TIME and copy=RATE, or some of them, "
      "such as step=0.2ms,update=16gbit",
      costs));
}

// Adds the costs of a machine. A message takes a time of its own, and its bytes are copied before
// or after they pass the link; so the machine acts like one more link.
void add_costs(const std::string& costs, FaultInjection& faults) {
  const Fields fields = fields_of_costs(costs);
  const auto value = [&](const char* name, const auto& parse) {
    const auto found = fields.find(name);
    return found == fields.end() ? 0.0 : parse(found->second, "--costs " + std::string(name));
  };
  faults.compute_seconds = value("step", parse_seconds);
  faults.server_bytes_per_second = value("update", parse_rate);
  faults.link.delay_seconds += value("message", parse_seconds);
  double& rate = faults.link.bytes_per_second;
  const double copy = value("copy", parse_rate);
  if (copy > 0.0) rate = rate > 0.0 ? 1.0 / (1.0 / rate + 1.0 / copy) : copy;
}

}  // namespace

bool has_step_cost(const std::string& costs) {
  const Fields fields = fields_of_costs(costs);
  const auto step = fields.find("step");
  return step != fields.end() && parse_seconds(step->second, "--costs step") > 0.0;
}

void add_flags(Cluster& cluster, const ClusterFlags& flags) {
  FaultInjection& faults = cluster.faults;
  const auto keep = [&](const char* flag, const std::string& value) {
    cluster.flags.insert(cluster.flags.end(), {flag, value});
  };
  if (!flags.service_time.empty()) {
    faults.service_time = parse_service_time(flags.service_time, "--service-time");
    const auto earlier = std::ranges::find(cluster.flags, "--service-time");
    if (earlier != cluster.flags.end()) cluster.flags.erase(earlier, earlier + 2);
    keep("--service-time", flags.service_time);
  }
  const auto take = [&](const char* flag, const std::vector<std::string>& values, const auto& parse,
                        auto& parsed) {
    for (const std::string& value : values) {
      parsed.push_back(parse(value));
      keep(flag, value);
    }
  };
  take("--slow", flags.slow, parse_slowness, faults.slow);
  take("--pause", flags.pauses, parse_pause, faults.pauses);
  take("--kill", flags.kills, parse_kill, faults.kills);
  take("--join", flags.joins, parse_join, faults.joins);
  if (!flags.link_delay.empty()) {
    faults.link.delay_seconds = parse_link_delay(flags.link_delay);
    keep("--link-delay", flags.link_delay);
  }
  if (!flags.link_rate.empty()) {
    faults.link.bytes_per_second = parse_link_rate(flags.link_rate);
    keep("--link-rate", flags.link_rate);
  }
  if (!flags.costs.empty()) {
    add_costs(flags.costs, faults);
    keep("--costs", flags.costs);
  }
}

std::string slow_worker(const std::string& factor, int workers) {
  const std::string number = factor.ends_with('x') ? factor.substr(0, factor.size() - 1) : "";
  const bool is_number = !number.empty() && number.find_first_not_of("0123456789.") == number.npos;
  if (!is_number) {
    throw UsageError("--slow-worker " + factor + ": expected a factor such as 4x");
  }
  return fmt::format("worker={},factor={}", workers - 1, number);
}

std::vector<Cluster> parse_clusters(const std::vector<std::string>& words, int workers,
                                    double step_milliseconds) {
  std::vector<Cluster> clusters;
  std::set<std::string> names;
  for (const std::string& list : words) {
    for (const std::string& word : split_variants(list)) {
      clusters.push_back(parse_cluster(word, workers, step_milliseconds));
      if (names.insert(clusters.back().name).second) continue;
      throw UsageError(fmt::format("--clusters: {} is named twice; name each cluster once",
                                   clusters.back().name));
    }
  }
  return clusters;
}

std::string describe_clusters() {
  std::string text;
  for (const NamedCluster& row : kNamedClusters) {
    text += fmt::format("\n{}: {}", row.name, row.help);
  }
  return text;
}

}  // namespace syncopate::bench
