// What a reader of a result should know: reasons for doubt, and how the numbers were made. A fact
// is a subject and a short text; the answer shows the first warnings, the page and --explain all
// facts.
#pragma once

#include <string>
#include <vector>

#include "bench/compare/report/outcome.h"

namespace syncopate::bench {

struct Fact {
  std::string subject;  // one or two words
  std::string text;     // without a full stop at its end; a warning has at most 15 words
  bool is_warning = false;
};

// The number of warnings beside an answer.
inline constexpr std::size_t kShownWarnings = 3;

// Returns the warnings, the most important first, and then the other facts.
std::vector<Fact> facts_of(const Outcome& outcome);
// Returns at most kShownWarnings warnings.
std::vector<Fact> shown_warnings(const Outcome& outcome);
// Returns the warnings as a list of the page; "" for none.
std::string warnings_html(const std::vector<Fact>& warnings);

}  // namespace syncopate::bench
