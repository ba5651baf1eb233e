// Describes a flag whose value differs between two tasks of one job.
#pragma once

#include <ostream>
#include <string>

namespace syncopate::test {

struct Difference {
  std::string flag;
  std::string first;
  std::string second;
};

inline std::ostream& operator<<(std::ostream& out, const Difference& difference) {
  return out << difference.flag;
}

}  // namespace syncopate::test
