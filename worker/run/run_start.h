// Where a training run begins. Only the chief touches files; the others take what it read.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/graph/graph.h"
#include "worker/checkpoint/checkpoint.h"
#include "worker/checkpoint/folder_lock.h"
#include "worker/run/train_options.h"

namespace syncopate {

struct RunStart {
  Progress progress;
  std::vector<std::string> notes{};  // for people: "resumed from ... at step 40"
  bool resumed = false;              // from a checkpoint of the run's own folder
  double seconds_spent = 0.0;        // by this process, before servers went back to an earlier step
  std::optional<FolderLock> folder{};  // --checkpoint-dir, no other run's as long as this lives
};

// Every task calls. Ends with Strategy::begin. Throws UsageError where a fresh run would mix with
// an older one, another one is at work in its folder, or the checkpoint is of another run; what
// find_first_values throws; PeerError.
// fresh: of a run that resumes nothing.
RunStart start_run(const TrainOptions& options, const Graph& graph, const Progress& fresh,
                   Strategy& strategy);

}  // namespace syncopate
