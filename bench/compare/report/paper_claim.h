// A claim of a paper about two variants.
#pragma once

#include <string>

namespace syncopate::bench {

struct PaperClaim {
  std::string source;  // the paper, such as "Goyal et al. 2017"
  std::string text;    // the claim
  // The labels of two variants. By the claim, `better` ends more accurate than `worse`, or reaches
  // the target sooner.
  std::string better;
  std::string worse;
};

}  // namespace syncopate::bench
