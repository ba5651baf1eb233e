// A flag that two tasks of one job were given differently.
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
