// The flags of compare that make trouble on purpose.
#pragma once

#include <string>
#include <vector>

#include "bench/compare/compare_options.h"

namespace CLI {
class App;
}

namespace syncopate::bench {

// One thread only.
class TroubleFlags {
 public:
  // Declares them. Both outlive the parsing.
  void declare(CLI::App& app);
  // Once they are parsed: adds what was asked for to options.trouble and, in words, to
  // options.trouble_words. Clock and variants are known. Throws UsageError, also for trouble of a
  // worker that no variant has.
  void apply(CompareOptions& options) const;

 private:
  std::string service_time_;
  std::vector<std::string> slow_;
  std::vector<std::string> pauses_;
  std::vector<std::string> kills_;
  std::vector<std::string> joins_;
  std::string link_delay_;
  std::string link_rate_;
};

}  // namespace syncopate::bench
