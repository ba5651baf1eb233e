// What a comparison shows, as sentences of plain text. Every number is computed from the runs, and
// no sentence claims more than they show.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bench/compare/report/comparison.h"
#include "bench/compare/report/summary.h"

namespace syncopate::bench {

// The verdict: sentences with full stops. Labels and failure reasons in them are not escaped.
struct Verdict {
  // The sentences of the verdict, in this order, each if it applies: which variant to use, whether
  // synchronous or asynchronous training was better, which variant to use over several machines,
  // which variant ended more accurate, and whether workers shared CPUs.
  std::vector<std::string> answer;
  std::vector<std::string>
      remarks;  // failures, missing runs and other facts that the reader should know
  std::optional<std::string> recommended{};  // the label of the variant to use
};

Verdict verdict(const Comparison& comparison);

// Joins the sentences of the verdict with blanks between them.
std::string paragraph_of(const std::vector<std::string>& sentences);

// Returns the remarks of a comparison's verdict (Verdict::remarks). rows: summarise(comparison).
std::vector<std::string> remarks(const Comparison& comparison, const Rows& rows);

}  // namespace syncopate::bench
