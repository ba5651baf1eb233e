#include "bench/compare/report/map_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <limits>
#include <sstream>
#include <string_view>
#include <utility>

#include "bench/compare/report/outcome_words.h"
#include "bench/compare/report/strategy_names.h"
#include "bench/compare/report/verdict_words.h"
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

ColumnSentence tied_sentence(const Outcome& column) {
  const Answer& answer = column.answer;
  if (!answer.next) return {fmt::format("Use {}.", winners_text(column)), "No other was as soon."};
  const std::string next = short_name(column.rows[*answer.next]);
  if (are_all_with_workers(column)) {
    std::vector<double> ratios;
    for (const std::size_t row : answer.winners) {
      ratios.push_back(column.cells[*answer.next].seconds / column.cells[row].seconds);
    }
    return {fmt::format(
                "Use {} workers, any strategy.",
                count_word(static_cast<std::size_t>(column.rows[answer.winners.front()].workers))),
            fmt::format("All {} are {} to {} times sooner than {}; no winner among them.",
                        count_word(answer.winners.size()), ratio_text(std::ranges::min(ratios)),
                        ratio_text(std::ranges::max(ratios)), next)};
  }
  const VariantSummary& first = column.rows[answer.winners.front()];
  return {fmt::format("Use {}.", winners_text(column)),
          fmt::format("{} is {} times sooner than the {}, {}{}.", short_name(first),
                      ratio_text(answer.next_ratio.value), rank_of_next(column), next,
                      interval_text(answer.next_ratio))};
}

// What the verdict says about a group of clusters with one answer.
std::string group_words(const Outcome& column) {
  switch (column.answer.form) {
    case AnswerForm::kWinner:
    case AnswerForm::kTie:
    case AnswerForm::kMissed:
      return are_all_with_workers(column) ? winners_text(column)
                                          : short_name(column.rows[column.answer.winners.front()]);
    case AnswerForm::kNoDifference:
    case AnswerForm::kEqual:
      return "no difference found";
    case AnswerForm::kNotReached:
      return "no strategy reached the target";
    case AnswerForm::kNotDecided:
      return "not decided";
    case AnswerForm::kBusy:
      return "no answer";
  }
  return "";
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
  for (const Outcome& column : map.columns) {
    const std::string words = group_words(column);
    auto group = std::ranges::find(groups, words, &AnswerGroup::answer);
    if (group == groups.end()) {
      const AnswerForm form = column.answer.form;
      groups.push_back(
          {words,
           form == AnswerForm::kWinner || form == AnswerForm::kTie || form == AnswerForm::kMissed,
           {}});
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

ColumnSentence column_sentence(const Outcome& column) {
  const Answer& answer = column.answer;
  const std::string target = target_text(column.comparison);
  switch (answer.form) {
    case AnswerForm::kWinner:
      if (!answer.next) return {fmt::format("Use {}.", winners_text(column)), ""};
      return {fmt::format("Use {}.", winners_text(column)),
              fmt::format("It is {} times sooner than the next, {}{}.",
                          ratio_text(answer.next_ratio.value),
                          short_name(column.rows[*answer.next]), interval_text(answer.next_ratio))};
    case AnswerForm::kTie: {
      ColumnSentence sentence = tied_sentence(column);
      sentence.than = capitalised(sentence.than);
      return sentence;
    }
    case AnswerForm::kNoDifference:
      return {"No difference found.",
              fmt::format("All {} reached {} in {} to {} s.", count_word(answer.winners.size()),
                          target, short_seconds(column.cells[answer.winners.front()].seconds),
                          short_seconds(column.cells[answer.winners.back()].seconds))};
    case AnswerForm::kEqual:
      return {"Equal.", fmt::format("All {} reached {} in the same time, within a factor of 1.1.",
                                    count_word(answer.winners.size()), target)};
    case AnswerForm::kMissed:
      return {fmt::format("Use {}.", winners_text(column)),
              fmt::format("The others did not reach {} with all seeds.", target)};
    case AnswerForm::kNotReached:
      return {"No answer.", fmt::format("No strategy reached {} with all seeds.", target)};
    case AnswerForm::kNotDecided:
      return {"Not decided.", fmt::format("{} cannot show a difference here.",
                                          capitalised(count_text(answer.seeds, "seed")))};
    case AnswerForm::kBusy:
      return {"No answer.", "Other programs used the CPUs."};
  }
  return {};
}

std::string map_verdict(const StrategyMap& map) {
  const std::vector<AnswerGroup> groups = groups_of(map);
  if (groups.size() == 1) {
    const std::string clusters = map.columns.size() == 1   ? groups.front().places.front()
                                 : map.columns.size() == 2 ? "on both clusters"
                                                           : "on each of these clusters";
    return groups.front().is_answer ? fmt::format("Use {} {}.", groups.front().answer, clusters)
                                    : verdict_sentence(map.columns.front());
  }
  const auto write = [&](const auto& places) {
    std::string text = "It depends on the cluster: ";
    for (const AnswerGroup& group : groups) {
      text += fmt::format("{}{} {}", &group == &groups.front() ? "" : ", ", group.answer,
                          places(group));
    }
    return text + ".";
  };
  const std::string full = write([&](const AnswerGroup& group) { return listed_or(group.places); });
  if (count_words(full) <= kMostVerdictWords) return full;
  return write([](const AnswerGroup& group) { return fmt::format("on {}", group.places.size()); });
}

std::string map_accuracy(const StrategyMap& map) {
  // The largest shown loss against the most accurate row of a column, and the rows that have one.
  double largest = 0.0;
  std::size_t above = 0;
  std::vector<std::size_t> below;
  double low = 1.0;
  double high = 0.0;
  for (const Outcome& column : map.columns) {
    std::size_t best = 0;
    for (std::size_t row = 0; row < column.rows.size(); ++row) {
      if (!column.rows[row].accuracy) continue;
      const double accuracy = column.rows[row].accuracy->mean;
      low = std::min(low, accuracy);
      high = std::max(high, accuracy);
      if (!column.rows[best].accuracy || accuracy > column.rows[best].accuracy->mean) best = row;
    }
    for (std::size_t row = 0; row < column.rows.size(); ++row) {
      if (!column.claims.is_more_accurate(best, row)) continue;
      if (std::ranges::find(below, row) == below.end()) below.push_back(row);
      const double loss = column.rows[best].accuracy->mean - column.rows[row].accuracy->mean;
      if (loss <= largest) continue;
      largest = loss;
      above = best;
    }
  }
  if (below.empty()) {
    const bool is_tested = std::ranges::any_of(map.columns, has_tested_accuracies);
    return high < low ? ""
                      : fmt::format("Accuracy: {} ({} to {} %).",
                                    is_tested ? "no difference found" : "too few seeds to compare",
                                    decimal_text(100.0 * low, 1), decimal_text(100.0 * high, 1));
  }
  std::vector<std::string> names;
  for (const std::size_t row : below) names.push_back(short_name(map.rows()[row]));
  return fmt::format("Accuracy: {} ended up to {} points below {}.", listed(names),
                     decimal_text(100.0 * largest, 1), short_name(map.rows()[above]));
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

std::string map_title(const StrategyMap& map) {
  const std::string budget = map.first().budget;
  const std::size_t of = budget.find(" of ");
  const std::string data = of == std::string::npos ? "" : " on " + budget.substr(of + 4);
  return fmt::format("Which strategy trains {}{} soonest with {}?", map.first().model, data,
                     count_text(map.workers(), "worker"));
}

std::string map_setting(const StrategyMap& map) {
  return fmt::format("Time to {} accuracy · {} · simulated time", target_text(map.first()),
                     count_text(map.seeds(), "seed"));
}

}  // namespace syncopate::bench
