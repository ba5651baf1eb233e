#include "bench/compare/report/map_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <sstream>
#include <string_view>
#include <utility>

#include "bench/compare/report/outcome_words.h"
#include "bench/compare/report/strategy_names.h"
#include "bench/plots/text.h"

namespace syncopate::bench {
namespace {

struct ClusterWords {
  std::string_view cluster;
  std::string_view head;
  std::string_view where;  // in the verdict
};
constexpr std::array kClusterWords = {
    ClusterWords{"equal", "Equal workers", "on equal workers"},
    ClusterWords{"jitter", "Jitter", "with jitter"},
    ClusterWords{"slow-worker", "Slow worker", "with a slow worker"},
    ClusterWords{"slow-link", "Slow link", "on a slow link"}};

std::string where(const Outcome& column) {
  for (const ClusterWords& words : kClusterWords) {
    if (words.cluster == column.cluster) return std::string(words.where);
  }
  return "on " + column.cluster;
}

// Returns the value of a flag of compare in the cluster's description; "" if it lacks the flag.
std::string flag_of(const Outcome& column, std::string_view flag) {
  std::istringstream words(column.comparison.faults);
  for (std::string name, value; words >> name >> value;) {
    if (name == flag) return value;
  }
  return "";
}

std::string link_rate(const Outcome& column) {
  const std::string rate = flag_of(column, "--link-rate");
  const std::size_t unit = rate.find("gbit");
  return unit == std::string::npos ? rate : rate.substr(0, unit) + " Gbit/s";
}

using Indices = std::vector<std::size_t>;

bool is_winner(const Outcome& column, std::size_t row) {
  if (!column.answer.has_winners()) return false;
  const Indices rows = recommended_rows(column);
  return std::ranges::find(rows, row) != rows.end();
}

// Returns the row to name for each cluster, of its winners: as few rows as possible, so that the
// reader has few names to remember. The row that wins on the most clusters comes first, of several
// the one with the least times.
std::vector<std::optional<std::size_t>> rows_to_name(const StrategyMap& map) {
  std::vector<std::optional<std::size_t>> named(map.columns.size());
  while (true) {
    Indices most;
    double least = 0.0;  // the sum of the ratios to the best
    std::size_t best = 0;
    for (std::size_t row = 0; row < map.rows().size(); ++row) {
      Indices wins;
      double sum = 0.0;
      for (std::size_t c = 0; c < map.columns.size(); ++c) {
        if (named[c] || !is_winner(map.columns[c], row)) continue;
        wins.push_back(c);
        sum += map.columns[c].cells[row].ratio;
      }
      if (wins.size() < most.size() || (wins.size() == most.size() && sum >= least)) continue;
      most = wins;
      least = sum;
      best = row;
    }
    if (most.empty()) return named;
    for (const std::size_t c : most) named[c] = best;
  }
}

// The clusters that have one answer.
struct AnswerGroup {
  std::string answer;
  bool is_answer = false;  // names what to use
  std::vector<std::string> places;
};

// Returns the groups, the largest first; those without a single winner last.
std::vector<AnswerGroup> groups_of(const StrategyMap& map) {
  std::vector<AnswerGroup> groups;
  const std::vector<std::optional<std::size_t>> named = rows_to_name(map);
  for (std::size_t c = 0; c < map.columns.size(); ++c) {
    const Outcome& column = map.columns[c];
    const bool is_alone = std::ranges::count(named, named[c]) == 1;
    std::string words = answer_words(column).use;
    words.front() = static_cast<char>(std::tolower(words.front()));
    if (named[c]) {
      words = is_alone && are_all_with_workers(column) ? winners_text(column)
                                                       : short_name(column.rows[*named[c]]);
    }
    auto group = std::ranges::find(groups, words, &AnswerGroup::answer);
    if (group == groups.end()) {
      groups.push_back({words, column.answer.has_winners(), {}});
      group = groups.end() - 1;
    }
    group->places.push_back(where(column));
  }
  const auto rank = [](const AnswerGroup& group) {
    const bool is_single = group.is_answer && !group.answer.starts_with("any ");
    return std::pair(!is_single, -std::ssize(group.places));
  };
  std::ranges::stable_sort(groups, {}, rank);
  return groups;
}

}  // namespace

std::string map_verdict(const StrategyMap& map) {
  if (map.columns.size() == 1) return verdict_sentence(map.columns.front());
  const std::vector<AnswerGroup> groups = groups_of(map);
  const auto is_claim = [](const Outcome& column) { return column.answer.is_claim(); };
  const bool has_claim = std::ranges::any_of(map.columns, is_claim);
  const auto with_rates = [&](const std::string& sentence) {
    return has_claim ? prefixed_with_rates(map.first(), sentence) : sentence;
  };
  if (groups.size() == 1) {
    return with_rates(fmt::format(
        "{}{} on {}.", groups.front().is_answer ? "Use " : "",
        groups.front().is_answer ? groups.front().answer : capitalised(groups.front().answer),
        map.columns.size() == 2 ? "both clusters" : "each of these clusters"));
  }
  const auto write = [&](const auto& places) {
    std::string text = "It depends on the cluster: ";
    for (const AnswerGroup& group : groups) {
      text += fmt::format("{}{} {}", &group == &groups.front() ? "" : ", ", group.answer,
                          places(group));
    }
    return with_rates(text + ".");
  };
  const std::string full =
      write([&](const AnswerGroup& group) { return listed(group.places, "or"); });
  if (count_words(full) <= kMostVerdictWords) return full;
  return write([](const AnswerGroup& group) { return fmt::format("on {}", group.places.size()); });
}

std::string map_next(const StrategyMap& map) {
  const auto has_winners = [](const Outcome& column) { return column.answer.has_winners(); };
  return std::ranges::any_of(map.columns, has_winners) ? "" : next_sentence(map.columns.front());
}

std::string map_accuracy(const StrategyMap& map) {
  AccuracyLosses most;  // of the cluster with the largest loss
  bool is_tested = false;
  double low = 1.0;
  double high = 0.0;
  for (const Outcome& column : map.columns) {
    AccuracyLosses losses = accuracy_losses(column);
    low = std::min(low, losses.low);
    high = std::max(high, losses.high);
    is_tested |= losses.is_tested;
    if (losses.largest > most.largest) most = std::move(losses);
  }
  most.low = low;
  most.high = high;
  most.is_tested = is_tested;
  most.is_of_several = map.columns.size() > 1;
  return accuracy_sentence(most, map.rows());
}

std::optional<Fact> map_warning(const StrategyMap& map) {
  std::vector<std::vector<Fact>> warnings;
  for (const Outcome& column : map.columns) warnings.push_back(shown_warnings(column));
  // What all clusters have in common, such as their rates, ranks below what went wrong on one.
  std::optional<Fact> rarest;
  auto fewest = std::ssize(warnings) + 1;
  for (std::size_t c = 0; c < warnings.size(); ++c) {
    if (warnings[c].empty()) continue;
    const Fact& first = warnings[c].front();
    const auto clusters = std::ranges::count_if(warnings, [&](const auto& others) {
      return std::ranges::find(others, first.text, &Fact::text) != others.end();
    });
    if (clusters >= fewest) continue;
    fewest = clusters;
    rarest = first;
    if (clusters < std::ssize(warnings)) {
      rarest->text = map.columns[c].cluster + ": " + rarest->text;
    }
  }
  return rarest;
}

ColumnHead column_head(const Outcome& column) {
  for (const ClusterWords& words : kClusterWords) {
    if (words.cluster != column.cluster) continue;
    std::string facts = link_rate(column) + " links";
    if (words.cluster == "jitter") facts = "exponential step times";
    if (words.cluster == "slow-worker") {
      const std::string slow = flag_of(column, "--slow");
      facts = fmt::format("one of {}, {}x slower",
                          std::ranges::max(column.rows, {}, &VariantSummary::workers).workers,
                          slow.substr(slow.rfind('=') + 1));
    }
    return {std::string(words.head), facts};
  }
  return {column.cluster, column.comparison.faults};
}

std::string map_setting(const StrategyMap& map) {
  return fmt::format("Time to {} accuracy{} · {} · simulated time", target_text(map.first()),
                     target_source(map.first()), count_text(map.seeds(), "seed"));
}

}  // namespace syncopate::bench
