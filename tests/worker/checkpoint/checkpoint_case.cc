#include "tests/worker/checkpoint/checkpoint_case.h"

#include <gtest/gtest.h>

#include <fstream>
#include <numeric>
#include <sstream>

#include "models/base/errors.h"

namespace syncopate {
namespace {

void append_tensors(const ArenaLayout& layout, const Tensor& block, std::vector<float>& values) {
  for (std::size_t i = 0; i < layout.entries().size(); ++i) {
    const auto begin = block.f32().begin() + layout.offset(i);
    values.insert(values.end(), begin, begin + layout.size(i));
  }
}

}  // namespace

Graph checkpoint_graph(const std::string& name, int classes) {
  GraphBuilder build(name);
  NodeId x = build.conv2d(build.input({4, 4, 2}, {}), "conv", 3, {.pad = 1});
  x = build.flatten(build.relu(build.batch_norm(x, "bn")));
  return build.finish(build.dense(x, "fc", classes));
}

Snapshot counting_snapshot(const Graph& graph, const std::vector<std::string>& slots, float first) {
  const auto block = [&first](const ArenaLayout& layout) {
    Tensor tensor = make_host_tensor({layout.total()}, DType::kF32);
    std::iota(tensor.f32().begin(), tensor.f32().end(), first);
    first += 1000.0F;
    return tensor;
  };
  Snapshot snapshot;
  snapshot.values = block(graph.parameter_layout());
  snapshot.state = block(graph.state_layout());
  for (const std::string& slot : slots) {
    snapshot.slots.push_back({slot, block(graph.parameter_layout())});
  }
  return snapshot;
}

std::vector<float> tensor_values(const Graph& graph, const Snapshot& snapshot) {
  std::vector<float> values;
  append_tensors(graph.parameter_layout(), snapshot.values, values);
  append_tensors(graph.state_layout(), snapshot.state, values);
  for (const Snapshot::Slot& slot : snapshot.slots) {
    append_tensors(graph.parameter_layout(), slot.values, values);
  }
  return values;
}

const std::vector<std::string>& adam_slots() {
  static const std::vector<std::string> kSlots = {"exp_avg", "exp_avg_sq"};
  return kSlots;
}

Progress some_progress() {
  return {.at = {.step = 1234, .samples = 78'976, .position = {.epoch = 1, .offset = 18'976}},
          .data = "digits",
          .seed = 42};
}

std::string read_file(const std::filesystem::path& path) {
  std::ostringstream bytes;
  bytes << std::ifstream(path, std::ios::binary).rdbuf();
  return bytes.str();
}

void write_file(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

std::string load_error(const std::filesystem::path& path, const Graph& graph,
                       const Snapshot& target, const std::string& optimizer, bool want_slots) {
  try {
    load_checkpoint(path, graph, target, optimizer, want_slots);
  } catch (const FileError& error) {
    return error.what();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

}  // namespace syncopate
