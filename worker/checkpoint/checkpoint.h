// Checkpoints: one safetensors file each, under DIR/checkpoint-<step>.safetensors. Written by the
// chief to a temporary file, synced, renamed; the last N are kept. Tensors are in PyTorch's names,
// shapes and order.
// Source: the safetensors format, github.com/huggingface/safetensors (u64 length, JSON, bytes).
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "models/graph/graph.h"
#include "models/tensor/tensor.h"
#include "ps/coordinator/data_position.h"
#include "strategies/strategy.h"
#include "worker/input/batch_source.h"

namespace syncopate {

// What a run must know to go on as if it had not stopped.
struct Progress {
  ps::RunPosition at{};
  std::string data{};      // what the position counts in: a DataSplits name, "digits"
  std::uint64_t seed = 1;  // all random numbers are functions of (seed, step, epoch, sample)
  // What older checkpoints do not say.
  std::string data_samples{};           // sizes, shape, classes and hashes of a few; ""
  std::int64_t samples_per_update = 0;  // 0
  double learning_rate = 0.0;           // that was asked for; 0
};

struct CheckpointInfo {
  std::filesystem::path path;
  Progress progress;
  std::string model;      // "mnist-cnn"
  std::string optimizer;  // "adam"
  std::optional<LossScaleState> loss_scale;
};

// <DIR>/checkpoint-000000001234.safetensors
std::filesystem::path checkpoint_path(const std::filesystem::path& dir, std::int64_t step);

// Throws FileError (folder not writable, disk full; the last good checkpoint survives, no temporary
// file stays).
void save_checkpoint(const std::filesystem::path& path, const Graph& graph,
                     const Snapshot& snapshot, const std::string& optimizer,
                     const Progress& progress);

// Removes all but the newest `keep` checkpoints of the folder, and temporary files that killed
// processes have left; not those that are being written.
void prune_checkpoints(const std::filesystem::path& dir, int keep);

// The checkpoint with the highest step, if the folder has one.
std::optional<std::filesystem::path> newest_checkpoint(const std::filesystem::path& dir);

// All of the folder, the one with the highest step first.
std::vector<std::filesystem::path> checkpoints_in(const std::filesystem::path& dir);

// Takes a damaged file out of the folder's checkpoints, of which it would stay the newest: it gets
// another name, which is returned. Throws FileError.
std::filesystem::path set_aside(const std::filesystem::path& checkpoint);

// Copies the tensors into `snapshot` (memory order); nothing is copied when it throws.
// `want_slots` false: values and state only (evaluation, --init-from).
// Throws DamagedFileError for a file that is cut short or damaged; FileError for one of another
// format version; UsageError for one of another network or optimizer, naming both and what differs.
CheckpointInfo load_checkpoint(const std::filesystem::path& path, const Graph& graph,
                               const Snapshot& snapshot, const std::string& optimizer,
                               bool want_slots);

// All values of a network in one short word: equal words, equal bits.

// FNV-1a of the block's bytes, 16 hexadecimal digits. values: on the host.
std::string weights_hash(const Tensor& values);

}  // namespace syncopate
