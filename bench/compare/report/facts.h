// Facts that a reader of a comparison should know: reasons to doubt its answer, and how its numbers
// were made. The first warnings are shown with the answer; the page and --explain show all facts.
#pragma once

#include <string>
#include <vector>

#include "bench/compare/report/outcome.h"

namespace syncopate::bench {

struct Fact {
  std::string subject;  // one or two words
  std::string text;     // without a final full stop; a warning has at most 15 words
  bool is_warning = false;
};

// The largest number of warnings that are shown with an answer.
inline constexpr std::size_t kShownWarnings = 3;

// Returns the warnings, the most important first, followed by the other facts.
std::vector<Fact> facts_of(const Outcome& outcome);
// Returns the most important warnings, at most kShownWarnings.
std::vector<Fact> shown_warnings(const Outcome& outcome);
// Returns the warnings as an HTML list; "" if there are none.
std::string warnings_html(const std::vector<Fact>& warnings);

}  // namespace syncopate::bench
