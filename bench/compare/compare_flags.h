// The command line of `syncopate-bench compare`, and the options that follow from it.
#pragma once

#include <memory>

#include "bench/compare/compare_options.h"
#include "deploy/cli/flag_set.h"
#include "models/base/environment.h"

namespace syncopate::bench {

// One thread only.
class CompareFlags {
 public:
  // Declares the flags. `flags` outlives this object.
  explicit CompareFlags(FlagSet& flags);
  ~CompareFlags();

  // Returns the options; called after the flags are parsed. Throws UsageError.
  CompareOptions options(const Environment& environment) const;

 private:
  struct Words;  // values as the command line has them

  void declare_variants();
  void declare_training();
  void apply_preset(CompareOptions& options) const;

  FlagSet& flags_;
  std::unique_ptr<Words> words_;
};

}  // namespace syncopate::bench
