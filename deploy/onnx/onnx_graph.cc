#include "deploy/onnx/onnx_graph.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "models/base/errors.h"

namespace syncopate {

using proto::onnx::NodeProto;

OnnxGraph::OnnxGraph(OnnxFile& file) : file_(file), constants_(file) {
  for (Node& node : *file.mutable_graph().mutable_node()) {
    for (const std::string& output : node.output()) {
      const bool is_first = output.empty() || writers_.emplace(output, &node).second;
      if (!is_first && written_twice_.empty()) written_twice_ = output;
    }
    for (const std::string& input : node.input()) readers_[input].push_back(&node);
  }
  if (file.graph().output_size() == 1) output_ = file.graph().output(0).name();
}

void OnnxGraph::fold_constants() {
  for (const Node& node : file_.graph().node()) {
    constants_.fold(node, [](const auto&) { return std::nullopt; });
  }
}

void OnnxGraph::require_one_output() const {
  if (!written_twice_.empty()) {
    file_.damaged(
        fmt::format("two nodes write the value {}; expected one", shown_name(written_twice_)));
  }
  if (file_.graph().output_size() == 1) return;
  std::vector<std::string> names;
  for (const auto& output : file_.graph().output()) names.push_back(shown_name(output.name()));
  throw UsageError(fmt::format("{}: {} outputs{}{}; expected one, the classes or numbers",
                               file_.path().string(), names.size(), names.empty() ? "" : ", ",
                               fmt::join(names, ", ")));
}

const NodeProto* OnnxGraph::writer(const std::string& value) const {
  const auto found = writers_.find(value);
  return found == writers_.end() ? nullptr : found->second;
}

std::span<NodeProto* const> OnnxGraph::readers(const std::string& value) const {
  const auto found = readers_.find(value);
  if (found == readers_.end()) return {};
  return found->second;
}

const NodeProto* OnnxGraph::only_reader(const Node& node) const {
  const auto all = readers(node.output(0));
  return node.output(0) != output_ && all.size() == 1 ? all.front() : nullptr;
}

const OnnxConstant* OnnxGraph::constant(const Node& node, int index) const {
  return has_input(node, index) ? constants_.find(node.input(index)) : nullptr;
}

std::vector<const NodeProto*> OnnxGraph::sort() {
  struct Visit {
    Node* node;
    int next_input = 0;
  };
  std::vector<const Node*> sorted;
  std::map<const Node*, bool> is_finished;
  std::vector<Visit> open;
  const auto enter = [&](const std::string& needed) {
    const auto writer = writers_.find(needed);
    if (writer == writers_.end()) return;
    const auto [state, is_new] = is_finished.emplace(writer->second, false);
    if (is_new) {
      open.push_back({writer->second});
    } else if (!state->second) {
      file_.damaged(
          fmt::format("node {} ({}) reads what it writes; expected a graph without cycles",
                      node_name(*writer->second), shown_name(writer->second->op_type())));
    }
  };
  readers_.clear();
  enter(output_);
  while (!open.empty()) {
    Visit& visit = open.back();
    if (visit.next_input < visit.node->input_size()) {
      enter(visit.node->input(visit.next_input++));
      continue;
    }
    is_finished[visit.node] = true;
    sorted.push_back(visit.node);
    for (const std::string& input : visit.node->input()) readers_[input].push_back(visit.node);
    open.pop_back();
  }
  // What depends on stored tensors alone comes first: a layer may need the bias of a later Add.
  for (const Node* node : sorted) constants_.fold(*node, [](const auto&) { return std::nullopt; });
  return sorted;
}

bool has_input(const NodeProto& node, int index) {
  return index < node.input_size() && !node.input(index).empty();
}

}  // namespace syncopate
