#include "bench/compare/report/strategy_names.h"

#include <fmt/format.h>

#include <cmath>
#include <sstream>
#include <string_view>

#include "bench/plots/text.h"
#include "strategies/strategy_row.h"

namespace syncopate::bench {
namespace {

struct Names {
  std::string row;
  std::string in_sentence;
};

// Returns the names of a consistency word, such as "ssp:3" or "sync+backup:1"; empty for others.
Names of_consistency(std::string_view word) {
  constexpr std::string_view kBackup = "sync+backup:";
  constexpr std::string_view kSsp = "ssp:";
  if (word == "async") return {"Async", "async"};
  if (word == "sync") return {"Sync", "sync"};
  if (word.starts_with(kBackup)) {
    const std::string count(word.substr(kBackup.size()));
    const std::string workers = count + (count == "1" ? " backup worker" : " backup workers");
    return {"Sync, " + workers, workers};
  }
  if (word.starts_with(kSsp)) {
    return {fmt::format("Async, within {} steps", word.substr(kSsp.size())), std::string(word)};
  }
  return {};
}

Names names_of(const VariantSummary& row) {
  const std::string_view label = row.name;
  const std::size_t colon = label.find(':');
  const StrategyRow* const strategy = find_strategy(label.substr(0, colon));
  if (strategy != nullptr && colon == std::string_view::npos) {
    return {std::string(strategy->title), std::string(strategy->short_name)};
  }
  if (strategy != nullptr && label.find('{') == std::string_view::npos) {
    Names names = of_consistency(label.substr(colon + 1));
    if (!names.row.empty() && strategy->variables == StrategyRow::Variables::kHost) {
      names.row += fmt::format(", {}", strategy->short_name);
      names.in_sentence += fmt::format(" in {}", strategy->short_name);
    }
    if (!names.row.empty()) return names;
  }
  return {row.name, named(row)};
}

}  // namespace

std::string row_name(const VariantSummary& row) { return names_of(row).row; }
std::string short_name(const VariantSummary& row) { return names_of(row).in_sentence; }

std::string name_with_short(const VariantSummary& row) {
  if (short_name(row) == named(row)) return row.name;
  std::istringstream words(short_name(row));
  for (std::string word; words >> word;) {
    if (word.size() > 3 && row.name.find(word) != std::string::npos) return row.name;
  }
  return fmt::format("{} ({})", row.name, short_name(row));
}

std::string ratio_text(double ratio) {
  if (std::abs(ratio - 1.0) < 1e-9) return "1";
  if (ratio >= 9.95) return fmt::format("{:.0f}", ratio);
  int decimals = 1;
  const auto text = [&] { return fmt::format("{:.{}f}", ratio, decimals); };
  while (std::stod(text()) == 1.0) ++decimals;
  return text();
}

std::string short_seconds(double seconds) {
  if (!(seconds > 0.0)) return "0";
  if (seconds >= 9.995) return short_text(seconds);
  const int decimals = seconds < 0.1 ? 1 - static_cast<int>(std::floor(std::log10(seconds))) : 2;
  return decimal_text(seconds, decimals);
}

}  // namespace syncopate::bench
