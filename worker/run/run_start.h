// Starts a training run: finds its initial values (a checkpoint of its folder, the weights of
// another file, or the values that follow from the seed) and brings them to every task. Only the
// chief reads files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "models/graph/graph.h"
#include "worker/checkpoint/checkpoint.h"
#include "worker/checkpoint/folder_lock.h"
#include "worker/input/dataset.h"
#include "worker/run/train_options.h"
#include "worker/train/metrics.h"

namespace syncopate {

// Returns the progress of a run at its start; a checkpoint to resume is compared with it.
// global_batch: samples per step of all synchronous replicas, or of each asynchronous worker.
Progress fresh_progress(const TrainOptions& options, const DataSplits& data,
                        std::int64_t global_batch);

struct FirstValues {
  std::optional<CheckpointInfo> resumed;  // the checkpoint of the run's own folder
  std::optional<Snapshot> values;         // the values of a file; nothing: the seed gives them
  // Damaged checkpoints that are newer than the resumed one, with the fault of each.
  std::vector<std::pair<std::filesystem::path, std::string>> damaged;
  std::vector<std::string> notes;  // for the user, such as "resumed from ... at step 40"
};

// Reads and checks files; changes no file. fresh: from fresh_progress(). like: a snapshot with the
// shapes of values and slots. Throws UsageError when a new run would mix with an older one in its
// folder, or a checkpoint belongs to another run; FileError when all checkpoints of the folder are
// damaged, naming the fault of the newest; what load_checkpoint throws.
FirstValues find_first_values(const TrainOptions& options, const Graph& graph,
                              const Progress& fresh, const Snapshot& like);

// Throws UsageError when a run has another head or normalization than a checkpoint. Both belong to
// the weights.
void require_same_network_flags(const CheckpointInfo& info, const NetworkFlags& flags);

struct RunStart {
  Progress progress;
  std::vector<std::string> notes{};  // for the user, such as "resumed from ... at step 40"
  bool resumed = false;              // whether from a checkpoint of the run's own folder
  double seconds_spent = 0.0;        // training of this process before a roll-back of the servers
  std::unique_ptr<FolderLock> folder{};  // the lock on --checkpoint-dir
  // Claims the file of --metrics and the folder of --tensorboard for an asynchronous job. Null in
  // other tasks.
  std::unique_ptr<MetricsWriter> metrics{};
};

// Every task calls this. Restores the initial values and calls Strategy::begin(). fresh: the
// progress of a new run. Throws UsageError when a new run would mix with an older one in its
// folder, another run uses the folder, or the checkpoint belongs to another run; what
// find_first_values throws; PeerError.
RunStart start_run(const TrainOptions& options, const Graph& graph, const Progress& fresh,
                   Strategy& strategy);

}  // namespace syncopate
