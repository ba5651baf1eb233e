// What a run begins with: a checkpoint of its folder, another file's weights, or the seed's first
// values. Here it is found, read and checked; nothing in the folder is changed.
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

// Of a run that resumes nothing; what a checkpoint says is held against it. global_batch: of all
// replicas that keep step, or else of each worker.
Progress fresh_progress(const TrainOptions& options, const DataSplits& data,
                        std::int64_t global_batch);

struct FirstValues {
  std::optional<CheckpointInfo> resumed;  // of the run's own folder
  std::optional<Snapshot> values;         // none: the seed's
  // Newer than the one that is resumed: why, for people.
  std::vector<std::pair<std::filesystem::path, std::string>> damaged;
  std::vector<std::string> notes;  // for people: "resumed from ... at step 40"
};

// fresh: fresh_progress(). like: the shapes of its values and slots. Throws UsageError
// where a fresh run would mix with an older one or a checkpoint is of another run; FileError where
// none of the folder's checkpoints is sound, naming the newest one's fault; what load_checkpoint
// throws.
FirstValues find_first_values(const TrainOptions& options, const Graph& graph,
                              const Progress& fresh, const Snapshot& like);

}  // namespace syncopate
