// Starts a training run: finds its initial values and sends them to every task. The values come
// from a checkpoint in the run's folder, from a file of weights, or from the seed. Only the chief
// reads files.
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

// Returns the progress of a new run, at step 0. find_first_values() compares a checkpoint with it
// to check that the checkpoint belongs to this run. global_batch: samples per step of all
// synchronous replicas, or of each asynchronous worker.
Progress fresh_progress(const TrainOptions& options, const DataSplits& data,
                        std::int64_t global_batch);

struct FirstValues {
  // The checkpoint in --checkpoint-dir that is resumed; nullopt for a new run.
  std::optional<CheckpointInfo> resumed;
  std::optional<Snapshot> values;  // values read from a file; nullopt: they follow from the seed
  // Damaged checkpoints that are newer than the resumed checkpoint, each with a description of its
  // fault.
  std::vector<std::pair<std::filesystem::path, std::string>> damaged;
  std::vector<std::string> notes;  // for the user, such as "resumed from ... at step 40"
};

// Reads the initial values from files and checks them; changes no file. fresh: from
// fresh_progress(). like: a snapshot with the shapes of values and slots. Throws UsageError if the
// folder of a new run has checkpoints of an older run, or a checkpoint belongs to another run.
// Throws FileError naming the fault of the newest checkpoint if all checkpoints of the folder are
// damaged. Also throws what load_checkpoint throws.
FirstValues find_first_values(const TrainOptions& options, const Graph& graph,
                              const Progress& fresh, const Snapshot& like);

// Throws UsageError if `flags` has another head or normalization than the checkpoint, because the
// weights of the checkpoint are valid only with the head and the normalization of their training.
void require_same_network_flags(const CheckpointInfo& info, const NetworkFlags& flags);

struct RunStart {
  Progress progress;
  std::vector<std::string> notes{};  // for the user, such as "resumed from ... at step 40"
  bool resumed = false;              // whether the run resumes a checkpoint in --checkpoint-dir
  // Seconds that this process trained before the servers last rolled back to a snapshot; 0 if they
  // never did.
  double seconds_spent = 0.0;
  std::unique_ptr<FolderLock> folder{};  // the lock on --checkpoint-dir
  // In the chief of an asynchronous job: a writer that keeps other runs from writing to the file of
  // --metrics and to the folder of --tensorboard. Null in other tasks and other jobs.
  std::unique_ptr<MetricsWriter> metrics{};
};

// Restores the initial values and calls Strategy::begin(); every task calls this function. fresh:
// from fresh_progress(). Throws UsageError if another run uses the folder. Also throws what
// find_first_values() throws, and PeerError.
RunStart start_run(const TrainOptions& options, const Graph& graph, const Progress& fresh,
                   Strategy& strategy);

}  // namespace syncopate
