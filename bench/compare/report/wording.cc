#include "bench/compare/report/wording.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <sstream>

#include "bench/compare/report/text.h"

namespace syncopate::bench {
namespace {

using Fields = std::map<std::string, std::string>;

// "worker=7,factor=4".
Fields fields_of(const std::string& value) {
  Fields fields;
  std::istringstream in(value);
  for (std::string field; std::getline(in, field, ',');) {
    const std::size_t equals = field.find('=');
    if (equals != std::string::npos) fields[field.substr(0, equals)] = field.substr(equals + 1);
  }
  return fields;
}

// Nothing where a field is missing or the flag is another one.
std::optional<std::string> words_of(const std::string& flag, const std::string& value) {
  if (flag == "--service-time") return value + " service times";
  if (flag == "--link-delay") return "links delayed by " + value;
  if (flag == "--link-rate") return "links of " + value;
  const Fields fields = fields_of(value);
  const auto has = [&](const char* name) { return fields.count(name) == 1; };
  if (!has("worker")) return std::nullopt;
  const std::string worker = "worker " + fields.at("worker");
  if (flag == "--slow" && has("factor")) return worker + " slowed " + fields.at("factor") + "x";
  if (!has("at")) return std::nullopt;
  if (flag == "--pause" && has("for")) {
    return worker + " paused for " + fields.at("for") + " at " + fields.at("at");
  }
  if (flag == "--join") return worker + " joining at " + fields.at("at");
  if (flag != "--kill") return std::nullopt;
  const std::string killed = worker + " killed at " + fields.at("at");
  return has("restart") ? killed + " and started again " + fields.at("restart") + " later" : killed;
}

}  // namespace

std::string trouble_words(const std::string& trouble) {
  std::istringstream in(trouble);
  std::vector<std::string> said;
  for (std::string flag, value; in >> flag;) {
    if (!(in >> value)) return trouble;
    const auto words = words_of(flag, value);
    if (!words) return trouble;
    said.push_back(*words);
  }
  return listed(said);
}

std::string named(const VariantSummary& row) {
  const bool is_one_word = row.name.find_first_of(" ,") == std::string::npos;
  return is_one_word ? row.name : "\"" + row.name + "\"";
}

std::string accuracy_of(const VariantSummary& row) {
  return decimal_text(100.0 * row.accuracy->mean, 2) + " %";
}

std::string time_of(const VariantSummary& row, const Comparison& comparison) {
  return short_text(row.seconds_to_target->mean) +
         (comparison.has_virtual_clock ? " virtual s" : " s");
}

std::string interval_words(const TimeRatio& ratio) {
  const Interval& interval = ratio.interval;
  if (!ratio.is_bounded()) {
    return ratio.is_significant() ? "at least " + factor_text(interval.low)
                                  : "evaluations are too far apart to tell";
  }
  const std::string range = factor_text(interval.low) + " to " + factor_text(interval.high);
  if (ratio.has_enough_seeds()) return "95 % interval " + range;
  return range + (ratio.seeds == 1 ? " with the one seed" : " with the two seeds");
}

std::string interval_words(const Difference& difference) {
  const Interval& interval = difference.interval;
  const double low = std::min(std::abs(interval.low), std::abs(interval.high));
  const double high = std::max(std::abs(interval.low), std::abs(interval.high));
  if (low == high) return "with every seed";
  return "95 % interval " + points_text(low) + " to " + points_text(high);
}

std::string few_seeds_words(int seeds) { return seeds == 1 ? "One seed is" : "Two seeds are"; }

std::string listed(const std::vector<std::string>& words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) text += i + 1 == words.size() ? " and " : ", ";
    text += words[i];
  }
  return text;
}

}  // namespace syncopate::bench
