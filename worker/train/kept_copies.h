// Copies of the variables whose evaluation is put off until training has ended (--eval-when end).
// Filled and emptied by assignment_runner.cc; outlives an attempt at training that servers have
// taken back.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "worker/train/copies_file.h"

namespace syncopate {

struct KeptCopiesOptions {
  std::filesystem::path folder;
  // The folder is the run's own: what a process leaves there when it is killed or stopped, another
  // one of the run takes up. Else a process' copies are gone with it.
  bool is_of_run = false;
};

// One thread only.
class KeptCopies {
 public:
  // Makes no file yet: most workers never need one. Throws FileError where none can be made.
  explicit KeptCopies(KeptCopiesOptions options);

  // The run has begun anew: what an earlier one left is none of its.
  void forget_earlier_run();

  // Throws FileError, naming the folder.
  void keep(const EvalMetrics& moment, const Snapshot& copy);
  // Also those that ended processes of the run have left.
  void take_over();
  std::int64_t size() const noexcept;

  // With each, by step, which is then done with; ends early when `evaluate` says false. Throws
  // FileError, and what `evaluate` throws.
  void evaluate(const std::function<bool(const EvalMetrics&, const Snapshot&)>& evaluate);

  // What becomes of those that are left when the job has been stopped.
  std::string describe_rest() const;

 private:
  const KeptCopiesOptions options_;
  std::optional<CopiesFile> own_;
  std::vector<CopiesFile> of_others_;
};

}  // namespace syncopate
