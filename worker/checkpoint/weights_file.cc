#include "worker/checkpoint/weights_file.h"

#include <fmt/format.h>

#include <fcntl.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "models/base/errors.h"
#include "models/base/file_descriptor.h"
#include "worker/checkpoint/checkpoint.h"
#include "worker/checkpoint/foreign_file.h"
#include "worker/checkpoint/stored_weights.h"
#include "worker/checkpoint/tensor_names.h"

namespace syncopate {
namespace {

constexpr std::string_view kKerasNetwork = "resnet50-v1";
constexpr std::string_view kTorchNetwork = "resnet50";
constexpr std::string_view kKerasFirstKernel = "conv1_conv/kernel";
constexpr std::string_view kCounterSuffix = ".num_batches_tracked";
constexpr std::string_view kUnreadable = "unreadable";
constexpr std::size_t kListed = 5;  // names that a message lists

// Returns the indices of the parameters of the head, the last layer with parameters: a dense one,
// "fc", or "fc.2" and the layers "fc.0" in front of it, or a convolution that gives label maps.
std::set<int> head_of(const Graph& graph) {
  const auto is_dense = [](const Node& node) {
    return std::holds_alternative<DenseOp>(node.operation);
  };
  const auto last = std::find_if(graph.nodes.rbegin(), graph.nodes.rend(), [&](const Node& node) {
    return is_dense(node) || (graph.gives_maps() && !node.parameters.empty());
  });
  std::set<int> head;
  if (last == graph.nodes.rend()) return head;
  if (!is_dense(*last)) return {last->parameters.begin(), last->parameters.end()};
  const std::string module = last->name.substr(0, last->name.find('.'));
  for (const Node& node : graph.nodes) {
    if (!is_dense(node) || (node.name + ".").rfind(module + ".", 0) != 0) continue;
    head.insert(node.parameters.begin(), node.parameters.end());
  }
  return head;
}

std::string list_of(const std::vector<std::string>& names) {
  const std::size_t listed = std::min(names.size(), kListed);
  std::string text = fmt::format("{}", fmt::join(names.begin(), names.begin() + listed, ", "));
  if (names.size() > listed) text += fmt::format(" and {} more", names.size() - listed);
  return text;
}

// PyTorch computes some parameters from other tensors. This is the name of such a tensor, and the
// call that makes a parameter of the result. {} is the parameter's name. Source: torch/nn/utils:
// prune.py, weight_norm.py, spectral_norm.py, parametrize.py.
struct ComputedForm {
  std::string_view part;
  std::string_view call;
};
constexpr std::array<ComputedForm, 5> kComputedForms = {
    {{"{}_mask", "prune.remove(LAYER, '{}')"},
     {"{}_g", "remove_weight_norm(LAYER, '{}')"},
     {"{}_u", "remove_spectral_norm(LAYER, '{}')"},
     {"parametrizations.{}.original", "parametrize.remove_parametrizations(LAYER, '{}')"},
     {"parametrizations.{}.original0", "parametrize.remove_parametrizations(LAYER, '{}')"}}};

// Loads one file into one network.
class WeightsLoader {
 public:
  WeightsLoader(const std::filesystem::path& path, const Graph& graph, std::uint64_t seed)
      : path_(path),
        graph_(graph),
        seed_(seed),
        head_(head_of(graph)),
        file_(path),
        of_keras_(std::ranges::any_of(file_.tensors(), is_keras_kernel)),
        has_average_(std::ranges::any_of(file_.tensors(), is_average)),
        names_(file_.tensors(), required(), path) {}

  std::string load(const Snapshot& snapshot) {
    refuse_other_network();
    const ArenaLayout parameters = graph_.parameter_layout();
    for (std::size_t i = 0; i < graph_.parameters.size(); ++i) {
      load_parameter(i,
                     snapshot.values.f32().subspan(static_cast<std::size_t>(parameters.offset(i)),
                                                   static_cast<std::size_t>(parameters.size(i))));
    }
    const ArenaLayout state = graph_.state_layout();
    for (std::size_t i = 0; i < graph_.state.size(); ++i) {
      const std::string& name = graph_.state[i].name;
      const TensorEntry* entry = find(name);
      if (!fits(entry, graph_.state[i].shape)) refuse_tensor(name, graph_.state[i].shape, entry);
      read(*entry, snapshot.state.f32().subspan(static_cast<std::size_t>(state.offset(i)),
                                                static_cast<std::size_t>(state.size(i))));
    }
    return note();
  }

 private:
  static bool is_keras_kernel(const TensorEntry& entry) {
    return entry.name.find(kKerasFirstKernel) != std::string::npos;
  }

  static bool is_average(const TensorEntry& entry) {
    return entry.name.starts_with(slot_name(std::string(kAverageSlot), ""));
  }

  std::string name_in_file(const std::string& name) const {
    return of_keras_ ? keras_name(name) : name;
  }

  // The tensors that the file must have: all except the head's. If the network is nothing but a
  // head, the file must have all.
  std::vector<TensorEntry> required() const {
    std::vector<TensorEntry> entries;
    const bool is_head = head_.size() == graph_.parameters.size();
    for (std::size_t i = 0; i < graph_.parameters.size(); ++i) {
      const Parameter& parameter = graph_.parameters[i];
      if (!is_head && head_.contains(static_cast<int>(i))) continue;
      entries.push_back({.name = name_in_file(parameter.name), .shape = shape_in_file(parameter)});
    }
    for (const State& state : graph_.state) {
      entries.push_back({.name = name_in_file(state.name), .shape = state.shape});
    }
    return entries;
  }

  const TensorEntry* find(const std::string& name) const {
    // A checkpoint with a moving average gives it, as export and evaluate do.
    const TensorEntry* average =
        has_average_ ? file_.find(slot_name(std::string(kAverageSlot), name)) : nullptr;
    return average != nullptr ? average : names_.find(name_in_file(name));
  }

  static bool fits(const TensorEntry* entry, const Shape& shape) {
    return entry != nullptr && entry->shape == shape;
  }

  // Whether two weights of dense layers differ in the number of inputs. The first layer of the head
  // reads the body's values, which do not depend on the number of classes.
  bool has_other_inputs(const TensorEntry& entry, const Shape& shape) const {
    if (shape.size() != 2) return false;
    const std::size_t inputs = of_keras_ ? 0 : 1;
    return entry.shape.size() != 2 || entry.shape[inputs] != shape[inputs];
  }

  // The shape of a parameter in this file; Keras has the output channels last.
  Shape shape_in_file(const Parameter& parameter) const {
    Shape shape = of_keras_ ? parameter.shape : parameter.file_shape;
    if (of_keras_) std::rotate(shape.begin(), shape.begin() + 1, shape.end());
    return shape;
  }

  void read(const TensorEntry& entry, std::span<float> values) {
    file_.read(entry, values);
    used_.insert(entry.name);
    const auto bad =
        std::ranges::find_if(values, [](float value) { return !std::isfinite(value); });
    if (bad == values.end()) return;
    throw FileError(fmt::format(
        "weights {}: element {} of tensor {} is {}, expected finite numbers; the file is damaged, "
        "or its network diverged",
        path_.string(), bad - values.begin(), entry.name, *bad));
  }

  void load_parameter(std::size_t i, std::span<float> memory) {
    const Parameter& parameter = graph_.parameters[i];
    const Shape shape = shape_in_file(parameter);
    const TensorEntry* entry = find(parameter.name);
    if (!fits(entry, shape)) {
      if (entry == nullptr) refuse_computed(parameter.name);
      const bool is_first_of_head = !head_.empty() && static_cast<int>(i) == *head_.begin();
      if (!head_.contains(static_cast<int>(i)) ||
          (is_first_of_head && entry != nullptr && has_other_inputs(*entry, shape))) {
        refuse_tensor(parameter.name, shape, entry);
      }
      const Tensor fresh = make_host_tensor(parameter.shape, DType::kF32);
      fill_initial_value(parameter, seed_, fresh);
      std::ranges::copy(fresh.f32(), memory.begin());
      if (entry != nullptr) unfit_.insert(entry->name);
      fresh_.push_back(
          parameter.name + " " + to_string(parameter.file_shape) +
          (entry == nullptr ? "" : fmt::format(" (the file has {})", to_string(entry->shape))));
      return;
    }
    std::vector<float> ordered(memory.size());
    read(*entry, ordered);
    if (!of_keras_) return file_to_memory_order(parameter, ordered, memory);
    // [R, S, C, K] and [in, out] become [K, R, S, C] and [out, in].
    const auto outputs = static_cast<std::size_t>(parameter.shape.front());
    const std::size_t inputs = memory.size() / outputs;
    for (std::size_t k = 0; k < outputs; ++k) {
      for (std::size_t c = 0; c < inputs; ++c) memory[k * inputs + c] = ordered[c * outputs + k];
    }
  }

  // A file of resnet50-v1 has a place for every tensor of resnet50, and almost the reverse. It
  // would load, train and give other results, because the strides are in other convolutions.
  void refuse_other_network() const {
    const auto refuse = [&](std::string_view found, std::string_view model) {
      throw UsageError(
          fmt::format("--init-from {} has {}, this run has network {}; give {}, or "
                      "another file",
                      path_.string(), found, graph_.name, model_flag(model)));
    };
    const auto model = file_.metadata().find("model");
    if (file_.metadata().contains("format_version") && model != file_.metadata().end()) {
      file_.verify_checksum();
      if (model->second != graph_.name) refuse("network " + model->second, model->second);
    }
    const bool has_biases = !of_keras_ && names_.find("conv1.bias") != nullptr;
    if (graph_.name == kTorchNetwork && (of_keras_ || has_biases)) {
      refuse(
          "Keras's ResNet50, which has biases in its convolutions and the stride of a bottleneck "
          "in the first one",
          kKerasNetwork);
    }
    if (graph_.name == kKerasNetwork && !of_keras_ && !has_biases &&
        names_.find("conv1.weight") != nullptr) {
      refuse(
          "the ResNet-50 of torchvision and timm, which has the stride of a bottleneck in its 3x3 "
          "convolution and no biases",
          kTorchNetwork);
    }
    refuse_unrelated();
  }

  void refuse_unrelated() const {
    const auto is_found = [&](const Parameter& parameter) { return find(parameter.name); };
    if (std::ranges::any_of(graph_.parameters, is_found)) return;
    for (const Parameter& parameter : graph_.parameters) refuse_computed(parameter.name);
    std::vector<std::string> names;
    for (const TensorEntry& entry : file_.tensors()) {
      if (!entry.name.ends_with(kCounterSuffix)) names.push_back(entry.name);
    }
    throw UsageError(fmt::format(
        "--init-from {} has no tensor of network {}, such as {}; it has {}; give {}the --model "
        "that "
        "the file belongs to, or a file with its tensors under the names of the network",
        path_.string(), graph_.name, graph_.parameters.front().name,
        names.empty() ? "no tensors" : list_of(names), advice_for_shard()));
  }

  // Throws UsageError if the file has, in place of a parameter, the tensors that PyTorch computes
  // it from, as for a pruned layer.
  void refuse_computed(const std::string& name) const {
    const std::size_t leaf = name.rfind('.') + 1;
    for (const ComputedForm& form : kComputedForms) {
      const std::string part =
          name.substr(0, leaf) + fmt::format(fmt::runtime(form.part), name.substr(leaf));
      const auto found = std::ranges::find_if(file_.tensors(), [&](const TensorEntry& entry) {
        return entry.name == part || entry.name.ends_with("." + part);
      });
      if (found == file_.tensors().end()) continue;
      throw UsageError(fmt::format(
          "--init-from {}: network {} has {}, which the file has as {} and others, from which "
          "PyTorch computes it; call torch.nn.utils.{} for each such layer, and save the "
          "state_dict again",
          path_.string(), graph_.name, name, found->name,
          fmt::format(fmt::runtime(form.call), name.substr(leaf))));
    }
  }

  [[noreturn]] void refuse_tensor(const std::string& name, const Shape& shape,
                                  const TensorEntry* found) const {
    throw UsageError(fmt::format(
        "--init-from {}: network {} has {} {}, {}{}; give {}the --model that the file belongs to{}",
        path_.string(), graph_.name, name_in_file(name), to_string(shape),
        found == nullptr ? "which the file lacks" : "the file has " + to_string(found->shape),
        names_.note().empty() ? "" : fmt::format(" (names {})", names_.note()),
        found == nullptr ? advice_for_shard() : "",
        found != nullptr && (name == graph_.parameters.front().name || is_of_head(name))
            ? ", and data with as many inputs, such as pictures of the same --image-size"
            : ""));
  }

  // What to give in place of one shard of several; "" for other files.
  std::string advice_for_shard() const {
    const std::filesystem::path index = index_beside(path_);
    if (!index.empty())
      return fmt::format("{}, which lists this shard and the others, or ", index.string());
    const bool is_shard = path_.stem().string().find("-of-") != std::string::npos;
    return is_shard ? "the .index.json of all shards, or " : "";
  }

  bool is_of_head(const std::string& name) const {
    return std::ranges::any_of(
        head_, [&](int i) { return graph_.parameters[static_cast<std::size_t>(i)].name == name; });
  }

  std::string note() const {
    std::string text =
        fmt::format("from {}: {} tensors{}{}", path_.filename().string(), used_.size(),
                    has_average_ ? ", the moving average" : "",
                    names_.note().empty() ? "" : fmt::format(" (names {})", names_.note()));
    if (!fresh_.empty()) text += fmt::format("; fresh: {}", fmt::join(fresh_, ", "));
    std::vector<std::string> others;
    std::size_t counters = 0;
    std::size_t slots = 0;
    for (const TensorEntry& entry : file_.tensors()) {
      if (used_.contains(entry.name) || unfit_.contains(entry.name)) continue;
      if (entry.name.ends_with(kCounterSuffix)) {
        ++counters;
      } else if (has_average_ && file_.find(slot_name(std::string(kAverageSlot), entry.name))) {
        continue;  // the average is used in place of this value
      } else if (entry.name.starts_with("optimizer.")) {
        ++slots;
      } else {
        others.push_back(entry.name);
      }
    }
    std::vector<std::string> unused;
    if (counters > 0) unused.push_back(fmt::format("{} num_batches_tracked", counters));
    if (slots > 0) unused.push_back(fmt::format("{} slots of the optimizer", slots));
    if (!others.empty()) unused.push_back(list_of(others));
    if (!unused.empty()) text += fmt::format("; not used: {}", fmt::join(unused, ", "));
    return text;
  }

  const std::filesystem::path& path_;
  const Graph& graph_;
  std::uint64_t seed_;
  std::set<int> head_;
  StoredWeights file_;
  bool of_keras_;
  bool has_average_;
  TensorNames names_;
  std::set<std::string> used_;
  std::set<std::string> unfit_;  // tensors of the file that fresh ones replace
  std::vector<std::string> fresh_;
};

}  // namespace

std::string load_weights(const std::filesystem::path& path, const Graph& graph, std::uint64_t seed,
                         const Snapshot& snapshot) {
  const std::filesystem::path file = file_or_newest_in(path);
  refuse_foreign_file(file, graph.name);
  try {
    return WeightsLoader(file, graph, seed).load(snapshot);
  } catch (const DamagedFileError& error) {
    throw FileError(error.fault() + "; write or fetch the file again");
  }
}

std::string describe_weights(const std::filesystem::path& path) {
  try {
    const std::filesystem::path file = file_or_newest_in(path);
    std::string text = describe_file(file);
    if (!is_json_file(file)) return text;
    for (const std::filesystem::path& shard : shards_of(file)) text += ", " + describe_file(shard);
    return text;
  } catch (const Error&) {
    return std::string(kUnreadable);  // load_weights() gives the reason
  }
}

std::string describe_file(const std::filesystem::path& path) {
  // A pipe that no program writes to must not block here; load_weights() refuses it.
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  std::vector<Bytef> chunk(std::size_t{1} << 20);
  uLong checksum = crc32(0, nullptr, 0);
  std::int64_t size = 0;
  while (true) {
    const ssize_t count = file ? ::read(file.get(), chunk.data(), chunk.size()) : -1;
    if (count < 0 && file && errno == EINTR) continue;
    if (count < 0) return std::string(kUnreadable);
    if (count == 0) return fmt::format("a file of {} bytes with CRC {:08x}", size, checksum);
    checksum = crc32_z(checksum, chunk.data(), static_cast<std::size_t>(count));
    size += count;
  }
}

}  // namespace syncopate
