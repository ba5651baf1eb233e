// Trains planned runs and writes their files: real runs one after the other, runs under the virtual
// clock several at once, and together with other processes if they share the runs.
#pragma once

#include <chrono>
#include <vector>

#include "bench/compare/comparison_parts.h"
#include "bench/compare/lock_file.h"
#include "worker/input/dataset.h"
#include "worker/train/progress.h"
#include "worker/train/stop_signal.h"

namespace syncopate::bench {

// A run that is still to be trained. The files of its part are open.
struct MissingRun {
  const ComparisonPart* part;
  const RunSpec* run;
};

struct RunTrainer {
  const DataSplits& data;
  StopSignal& signals;
  ProgressDisplay& display;
  bool notes_failures_only = false;                         // results of other runs are not shown
  std::chrono::milliseconds others_timeout = kLockTimeout;  // see train()

  // Trains the runs. A failed run is noted in its file and does not end the training. total: the
  // number of runs that the progress counts, including those that were trained before. If processes
  // share the runs, trains those that no other process trains, and waits for the others; takes over
  // the runs of a process that dies. Returns false if a signal stopped the training. Throws
  // FileError. Throws PeerError if no other process gave a sign of life for others_timeout.
  bool train(const std::vector<MissingRun>& runs, int total) const;
  // Trains the runs again during which other processes took much of the CPUs, once each, and keeps
  // the result of the quieter time. Does nothing if the machine is still busy: a comparison on a
  // busy machine would take twice as long for no better result. report: the folder, for a note.
  // Returns false if a signal stopped the training. Throws FileError.
  bool repeat_disturbed(const ComparisonPart& part, const std::filesystem::path& report) const;
};

}  // namespace syncopate::bench
