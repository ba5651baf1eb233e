// What a comparison has shown, in words: sentences of plain text, every number computed, no claim
// beyond the runs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bench/compare/report/comparison.h"

namespace syncopate::bench {

// Sentences, with their full stops. Labels and reasons stand in them as they came: whoever shows
// them makes them harmless.
struct Verdict {
  // For somebody in a hurry: which to take; synchronous or asynchronous; which one over several
  // machines; what the machine had to do with it.
  std::vector<std::string> answer;
  std::vector<std::string> remarks;          // the rest
  std::optional<std::string> recommended{};  // label of the variant to take
};

Verdict verdict(const Comparison& comparison);

// With a blank between.
std::string paragraph_of(const std::vector<std::string>& sentences);

}  // namespace syncopate::bench
