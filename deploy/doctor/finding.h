// What doctor says: one line each, the worst first.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace syncopate {

struct Finding {
  enum class Kind : std::uint8_t { kError, kWarning, kNote, kGood };
  Kind kind = Kind::kGood;
  std::string what;  // "clocks"
  std::string line;  // what is so, where, and what to try
};

// In lines for people: errors, warnings, notes, what is well; each with its kind in front.
std::string describe(std::vector<Finding> findings);
bool has_errors(const std::vector<Finding>& findings);

}  // namespace syncopate
