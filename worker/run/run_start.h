// Starts a training run: finds its initial values and brings them to every task. Only the chief
// reads files.
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
  std::vector<std::string> notes{};    // for the user: "resumed from ... at step 40"
  bool resumed = false;                // from a checkpoint of the run's own folder
  double seconds_spent = 0.0;          // training of this process before a roll-back of the servers
  std::optional<FolderLock> folder{};  // the lock on --checkpoint-dir
};

// Every task calls it. Restores the initial values and calls Strategy::begin(). fresh: the progress
// of a new run. Throws UsageError when a new run would mix with an older one in its folder, another
// run uses the folder, or the checkpoint belongs to another run; what find_first_values throws;
// PeerError.
RunStart start_run(const TrainOptions& options, const Graph& graph, const Progress& fresh,
                   Strategy& strategy);

}  // namespace syncopate
