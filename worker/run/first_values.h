// Finds the initial values of a run: a checkpoint of its folder, the weights of another file, or
// the values that follow from the seed. Reads and checks files, and changes none.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "models/graph/graph.h"
#include "worker/checkpoint/checkpoint.h"
#include "worker/input/dataset.h"
#include "worker/run/train_options.h"

namespace syncopate {

// The progress of a new run, with which a checkpoint is compared. global_batch: samples per step of
// all synchronous replicas, or of each asynchronous worker.
Progress fresh_progress(const TrainOptions& options, const DataSplits& data,
                        std::int64_t global_batch);

struct FirstValues {
  std::optional<CheckpointInfo> resumed;  // the checkpoint of the run's own folder
  std::optional<Snapshot> values;         // nothing: they follow from the seed
  // Damaged checkpoints that are newer than the resumed one, with the fault of each.
  std::vector<std::pair<std::filesystem::path, std::string>> damaged;
  std::vector<std::string> notes;  // for the user: "resumed from ... at step 40"
};

// fresh: from fresh_progress(). like: a snapshot with the shapes of values and slots. Throws
// UsageError when a new run would mix with an older one in its folder, or a checkpoint belongs to
// another run; FileError when all checkpoints of the folder are damaged, naming the fault of the
// newest; what load_checkpoint throws.
FirstValues find_first_values(const TrainOptions& options, const Graph& graph,
                              const Progress& fresh, const Snapshot& like);

}  // namespace syncopate
