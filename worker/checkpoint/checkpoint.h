// Writes and reads checkpoints. A checkpoint is one safetensors file,
// DIR/checkpoint-<step>.safetensors. The chief writes a temporary file, syncs it and renames it.
// Only the newest checkpoints are kept, see prune_checkpoints(). Tensors have PyTorch's names,
// shapes and order. Source: the safetensors format, github.com/huggingface/safetensors.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/graph/graph.h"
#include "models/tensor/tensor.h"
#include "ps/coordinator/data_position.h"
#include "strategies/strategy.h"
#include "worker/input/batches/batch_source.h"

namespace syncopate {

// What a checkpoint records in addition to the tensors, so that a resumed run can continue.
struct Progress {
  ps::RunPosition at{};
  std::string data{};          // DataSplits::name of the data that `at.position` refers to
  std::uint64_t seed = 1;      // the seed of the run, from which all random numbers follow
  std::string data_flag{};     // the value of --data, "mnist:DIR"; the name of a program's own data
  std::string split{};         // the value of --split
  std::string head{};          // the value of --head; empty: no head
  std::string normalize{};     // the value of --normalize; empty: the data set's normalization
  std::string data_samples{};  // the text of describe_training_samples()
  std::int64_t samples_per_update = 0;
  std::int64_t rounds = 0;     // rounds of local updates so far
  std::string update_flags{};  // update_flags() of the run: "--learning-rate 0.1 --ema 0.9"
  std::int64_t skip_bad_records = 0;
  int apply_exif = 0;           // 1 if --exif was given
  std::string image_feature{};  // the value of --image-feature
  std::string label_feature{};  // the value of --label-feature
  std::string raw_shape{};      // the value of --raw-shape
  std::string class_names{};    // DataSplits::class_names, one per line
  std::string table_columns{};  // DataSplits::table_columns
};

struct CheckpointInfo {
  std::filesystem::path path;
  Progress progress;
  std::string model;      // name of the network, "mnist-cnn"
  std::string optimizer;  // name of the optimizer, "adam"
  std::string network;    // the network as text (graph_text.h)
  std::optional<LossScaleState> loss_scale;
  // With --outer-scale-by-rate: the inner learning rate of the last step.
  std::optional<float> outer_rate;
  // Set by load_checkpoint(): what does not simply continue, such as the state of an optimizer.
  std::vector<std::string> notes{};
  bool has_average = false;  // whether the file has a moving average of the parameters
};

// Returns DIR/checkpoint-000000001234.safetensors for step 1234.
std::filesystem::path checkpoint_path(const std::filesystem::path& dir, std::int64_t step);

// Returns the name of a parameter's slot in a checkpoint, such as "optimizer.momentum.fc.weight".
std::string slot_name(const std::string& slot, const std::string& parameter);

// Writes a checkpoint. Throws FileError if the folder is not writable or the disk is full; then
// earlier checkpoints are unchanged and no temporary file is left.
void save_checkpoint(const std::filesystem::path& path, const Graph& graph,
                     const Snapshot& snapshot, const std::string& optimizer,
                     const Progress& progress);

// Removes all checkpoints of the folder except the newest `keep` checkpoints and the checkpoint of
// step `best`. Also removes temporary files of processes that have ended.
void prune_checkpoints(const std::filesystem::path& dir, int keep, std::int64_t best = 0);

// Returns the checkpoint with the highest step; nullopt for a folder without checkpoints.
std::optional<std::filesystem::path> newest_checkpoint(const std::filesystem::path& dir);

// Returns all checkpoints of the folder, sorted from the highest to the lowest step.
std::vector<std::filesystem::path> checkpoints_in(const std::filesystem::path& dir);

// Renames a damaged checkpoint, so that it is no longer the newest checkpoint of its folder.
// Returns the new name. Throws FileError.
std::filesystem::path set_aside(const std::filesystem::path& checkpoint);

// Returns the path of weights that another program wrote. If `path` is an index of shards or one of
// its shards, returns the index. If `path` is a folder without checkpoints, returns the index or
// the file of weights in the folder. Returns "" for other paths, including a single file of
// weights.
std::filesystem::path foreign_weights_at(const std::filesystem::path& path);

// Returns the newest checkpoint if `path` is a folder, else `path`. Throws UsageError if the folder
// has no checkpoints, or if `path` is one of several shards. Throws FileError.
std::filesystem::path file_or_newest_in(const std::filesystem::path& path);

// Returns the flag that selects the network with this name, such as "--model mlp".
std::string model_flag(std::string_view network);

// Reads what a checkpoint records beside its tensors. path: a checkpoint, or a folder, from which
// the newest checkpoint is read. Throws DamagedFileError and FileError as load_checkpoint() does.
CheckpointInfo read_checkpoint_info(const std::filesystem::path& path);

// Builds the network that a checkpoint records, with the normalisation of its inputs. Throws
// FileError naming the checkpoint if this program does not have an operation of the network.
Graph recorded_network(const CheckpointInfo& info);

// Copies a checkpoint's tensors into `snapshot`, in memory order. If the checkpoint has the
// optimizer's state of another number of workers than `snapshot`, workers share states, or a common
// state becomes the mean of all. If it throws, `snapshot` is
// unchanged. want_slots: whether to read optimizer slots in addition to values and state;
// evaluation and --init-from do not need slots. Throws DamagedFileError for a file that is cut
// short or damaged. Throws FileError for a file of another format version or program. Throws
// UsageError if the checkpoint has another network or optimizer than expected; the error names
// both.
CheckpointInfo load_checkpoint(const std::filesystem::path& path, const Graph& graph,
                               const Snapshot& snapshot, const std::string& optimizer,
                               bool want_slots);

// Replaces the parameters in `values` (memory order) by the moving average that a checkpoint
// stores. The caller must have read the checkpoint with load_checkpoint(), and
// CheckpointInfo::has_average must be true for this checkpoint. Throws what load_checkpoint()
// throws.
void load_average(const std::filesystem::path& path, const Graph& graph, const Tensor& values);

// Returns the FNV-1a hash of the bytes of `values` as 16 hexadecimal digits. values: a tensor on
// the host.
std::string weights_hash(const Tensor& values);

// These functions convert sample ranges to JSON text, "[[epoch, begin, end], ...]", and back. The
// metadata of a checkpoint are strings, so they store the ranges of skipped samples in this form.
// Parsing returns nullopt for text in another form, negative numbers and empty ranges.
std::string to_json(std::span<const ps::SampleRange> ranges);
std::optional<std::vector<ps::SampleRange>> parse_sample_ranges(std::string_view text);

}  // namespace syncopate
