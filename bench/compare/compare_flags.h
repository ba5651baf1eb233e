// The flags of `syncopate-bench compare`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/compare/cluster.h"
#include "bench/compare/cluster_flags.h"
#include "bench/compare/compare_options.h"
#include "deploy/cli/flag_set.h"
#include "models/base/environment.h"

namespace syncopate::bench {

// The command line of compare, and the options that follow from it. One thread only.
class CompareFlags {
 public:
  // Declares the flags of compare. `flags` outlives this object.
  explicit CompareFlags(FlagSet& flags) : flags_(flags) {
    declare_variants();
    declare_training();
    declare_cluster_flags(flags_, cluster_, slow_worker_);
  }

  // Throws UsageError for a flag that --replay would not honour.
  void check_replay() const;
  // Returns the options of the comparison; called after the flags are parsed. Throws UsageError.
  CompareOptions options(const Environment& environment) const;
  bool shares_runs() const noexcept { return shares_runs_; }  // with other processes

 private:
  void declare_variants();
  void declare_training();
  void add_default_variants(CompareOptions& options) const;
  // Throws UsageError for flags that contradict --share-runs.
  void check_share_runs(const CompareOptions& options) const;
  // Adds the faults of the flags to options.cluster; clock and variants are known. Throws
  // UsageError, also for a worker that no variant has.
  void apply_faults(CompareOptions& options) const;
  // Throws UsageError for flags that contradict --clusters.
  void check_clusters(const CompareOptions& options) const;
  // Fills options.clusters; the variants are known. Throws UsageError.
  void apply_clusters(CompareOptions& options) const;

  FlagSet& flags_;
  CompareOptions options_;  // the options that need no further work
  // The values of the flags that need further work, as the command line has them.
  std::vector<std::string> strategies_;
  std::string preset_;
  int workers_ = 4;
  int servers_ = 2;
  std::string clock_ = "real";  // with --clusters: virtual
  std::string budget_ = "samples";
  std::optional<std::int64_t> epochs_;
  std::optional<int> seeds_;
  std::optional<int> evaluations_;
  std::optional<double> target_accuracy_;
  std::optional<int> jobs_;
  std::vector<std::string> train_flags_;
  bool shares_runs_ = false;
  bool hides_progress_ = false;
  ClusterFlags cluster_;
  std::string slow_worker_;
  std::string same_ = "worker-batch";
  std::vector<std::string> clusters_;
  StepTime step_time_;
};

}  // namespace syncopate::bench
