#include "bench/compare/comparison_difference.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <vector>

namespace syncopate::bench {
namespace {

using Json = nlohmann::ordered_json;

struct Condition {
  const char* key;
  const char* words;
  const char* null_words = "missing";  // what a message says of a value that is null or missing
};
// What the runs of a comparison have in common. A message names the first difference in this order.
constexpr std::array kOfComparison = {Condition{"model", "model"},
                                      Condition{"network_file", "network file"},
                                      Condition{"data", "data set"},
                                      Condition{"clock", "clock"},
                                      Condition{"budget", "budget"},
                                      Condition{"batch", "batch"},
                                      Condition{"target_accuracy", "target accuracy", "derived"},
                                      Condition{"trouble", "fault injection"},
                                      Condition{"threads_per_worker", "threads per worker"},
                                      Condition{"data_hash", "hash of the data set's contents"},
                                      Condition{"step_times", "hash of the file of step times"},
                                      Condition{"network_hash", "hash of the network"}};
// What a run must have in common with an earlier one for that one's result to be kept.
constexpr std::array kOfRun = {Condition{"label", "variant"},   Condition{"seed", "seed"},
                               Condition{"clock", "clock"},     Condition{"workers", "workers"},
                               Condition{"servers", "servers"}, Condition{"trouble", "faults"},
                               Condition{"program", "program"}};

// Returns the flags of train, each with its values: {"--epochs 2", "--deterministic"}.
std::vector<std::string> flags_of(const Json& head) {
  std::vector<std::string> flags;
  for (const Json& word : value_at(head, "flags")) {
    const std::string text = words_of(word);
    if (flags.empty() || text.starts_with("--")) {
      flags.push_back(text);
    } else {
      flags.back() += " " + text;
    }
  }
  return flags;
}

// Returns the first of `flags` that `others` lacks; "" if there is none.
std::string first_missing(const std::vector<std::string>& flags,
                          const std::vector<std::string>& others) {
  for (const std::string& flag : flags) {
    if (std::ranges::find(others, flag) == others.end()) return flag;
  }
  return "";
}

}  // namespace

std::string difference_of_comparisons(const Json& found, const Json& wanted) {
  for (const Condition& condition : kOfComparison) {
    const Json was = value_at(found, condition.key);
    const Json is = value_at(wanted, condition.key);
    if (was == is) continue;
    const auto words = [&](const Json& value) {
      return value.is_null() ? condition.null_words : words_of(value);
    };
    return fmt::format("the {} is {}, not {}", condition.words, words(was), words(is));
  }
  return "";
}

std::string difference_of_run(const Json& found, const Json& wanted) {
  const std::string label = words_of(value_at(wanted, "label"));
  for (const Condition& condition : kOfRun) {
    const Json was = value_at(found, condition.key);
    const Json is = value_at(wanted, condition.key);
    if (was == is) continue;
    return fmt::format("{} was trained with {} {}, not {}", label, condition.words, words_of(was),
                       words_of(is));
  }
  if (value_at(found, "flags") == value_at(wanted, "flags")) return "";
  const std::string was = first_missing(flags_of(found), flags_of(wanted));
  const std::string is = first_missing(flags_of(wanted), flags_of(found));
  if (was.empty()) return fmt::format("{} was trained without {}", label, is);
  return fmt::format("{} was trained with {}, {}", label, was,
                     is.empty() ? "which is not given here" : "not " + is);
}

Json value_at(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() ? Json(nullptr) : *found;
}

std::string words_of(const Json& value) {
  if (value.is_string() && !value.get<std::string>().empty()) return value.get<std::string>();
  if (value.is_number()) return value.dump();
  std::string words;
  if (value.is_array()) {
    for (const Json& one : value) words += (words.empty() ? "" : " ") + words_of(one);
  }
  return words.empty() ? "none" : words;
}

}  // namespace syncopate::bench
