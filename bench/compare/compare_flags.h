// The command line of `syncopate-bench compare`, and the options that it stands for.
#pragma once

#include <memory>

#include "bench/compare/compare_options.h"
#include "models/base/environment.h"

namespace CLI {
class App;
}

namespace syncopate::bench {

// One thread only.
class CompareFlags {
 public:
  // Declares them. `app` outlives this.
  explicit CompareFlags(CLI::App& app);
  ~CompareFlags();

  // Once they are parsed. Throws UsageError.
  CompareOptions options(const Environment& environment) const;

 private:
  struct Words;  // as they stand on the command line

  void declare_variants();
  void declare_training();
  void apply_preset(CompareOptions& options) const;

  CLI::App& app_;
  std::unique_ptr<Words> words_;
};

}  // namespace syncopate::bench
