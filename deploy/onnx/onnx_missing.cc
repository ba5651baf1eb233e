#include "deploy/onnx/onnx_missing.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "models/base/errors.h"
#include "models/base/lower_case.h"

namespace syncopate {
namespace {

using proto::onnx::NodeProto;

constexpr std::size_t kListedKinds = 12;

bool is_of_adaptive_pool(const NodeProto& node) {
  return std::ranges::any_of(node.metadata_props(), [](const auto& entry) {
    const std::string text = lower_case(entry.value());
    return text.find("adaptiveavgpool") != text.npos || text.find("adaptivemaxpool") != text.npos ||
           text.find("adaptive_avg_pool") != text.npos ||
           text.find("adaptive_max_pool") != text.npos;
  });
}

}  // namespace

OnnxMissing::OnnxMissing(const OnnxGraph& graph, const std::vector<const Node*>& nodes)
    : graph_(graph) {
  find_attention(nodes);
}

void OnnxMissing::refuse(const Node& node, const std::string& what) {
  // PyTorch writes such a pool as dozens of nodes.
  if (is_of_adaptive_pool(node)) {
    return add("an adaptive pool", " to a size that does not divide that of the map",
               node_name(node));
  }
  if (is_of_attention(node)) {
    const std::string_view cure =
        graph_.constants().origins().is_of_pytorch() ? ", exported with dynamo=False" : "";
    return add("attention",
               fmt::format(" in a form that is not known; expected a layer each for q, k "
                           "and v, their views as [N, heads, rows, features], and "
                           "scaled_dot_product_attention{}",
                           cure),
               node_name(node));
  }
  const std::string op = node.domain() == kJoinedDomain ? node.op_type() : operator_name(node);
  add(shown_name(op), (what.empty() ? "" : " ") + what, node_name(node));
}

void OnnxMissing::add(const std::string& op, const std::string& what, const std::string& node) {
  auto entry = std::ranges::find_if(
      missing_, [&](const Missing& each) { return each.op == op && each.what == what; });
  if (entry == missing_.end()) entry = missing_.insert(entry, {op, what, {}});
  entry->nodes.push_back(node);
}

void OnnxMissing::find_attention(const std::vector<const Node*>& nodes) {
  // Between the two products of attention, and in front of them.
  static constexpr std::array kBetween = {"Add", "Cast",    "CastLike", "Div",  "Dropout",
                                          "Mul", "Softmax", "Reshape",  "Where"};
  static constexpr std::array kInFront = {
      "Abs",     "Add",        "Cast",      "CastLike",  "Concat", "Div",   "Equal",
      "Expand",  "Gather",     "Gemm",      "Identity",  "MatMul", "Mod",   "Mul",
      "Pow",     "Reciprocal", "Reshape",   "Shape",     "Slice",  "Split", "Sqrt",
      "Squeeze", "Sub",        "Transpose", "Unsqueeze", "Where"};
  const auto writer = [&](const std::string& value) {
    return graph_.constants().find(value) == nullptr ? graph_.writer(value) : nullptr;
  };
  const auto is_one_of = [](const Node& node, const auto& ops) {
    return std::ranges::find(ops, operator_name(node)) != std::end(ops);
  };
  const auto of_first = [&](const Node& node) {
    return node.input_size() > 0 ? writer(node.input(0)) : nullptr;
  };
  std::vector<const Node*> open;
  for (const Node* node : nodes) {
    if (operator_name(*node) != "MatMul") continue;
    const Node* at = of_first(*node);
    bool has_softmax = false;
    while (at != nullptr && is_one_of(*at, kBetween)) {
      has_softmax = has_softmax || at->op_type() == "Softmax";
      at = of_first(*at);
    }
    if (has_softmax && at != nullptr && operator_name(*at) == "MatMul") open.push_back(node);
  }
  while (!open.empty()) {
    const Node* node = open.back();
    open.pop_back();
    if (!attention_.insert(node).second) continue;
    std::vector<const Node*> before;
    for (const std::string& input : node->input()) {
      if (const Node* const each = writer(input)) before.push_back(each);
    }
    // A sum of two values belongs to a block around the attention.
    if (node->op_type() == "Add" && before.size() > 1) continue;
    for (const Node* each : before) {
      if (is_one_of(*each, kInFront) || each->op_type() == "Softmax") open.push_back(each);
    }
  }
}

bool OnnxMissing::is_of_attention(const Node& node) const {
  // Of the others a weight or a number may be the cause.
  constexpr std::array kOthers = {"Add", "Div", "Gemm", "MatMul", "Mul", "Softmax", "Sub"};
  return attention_.contains(&node) &&
         std::ranges::find(kOthers, operator_name(node)) == kOthers.end();
}

void OnnxMissing::throw_if_any() const {
  if (missing_.empty()) return;
  std::vector<std::string> all;
  for (const Missing& each : missing_) {
    if (all.size() == kListedKinds) {
      all.push_back(fmt::format("and {} more kinds", missing_.size() - kListedKinds));
      break;
    }
    all.push_back(fmt::format("{} in node{} {}{}", each.op, each.nodes.size() == 1 ? "" : "s",
                              listed_names(each.nodes), each.what));
  }
  throw UsageError(
      fmt::format("{}: no counterpart here: {}; `syncopate convert --help` lists what is taken{}",
                  graph_.file().path().string(), fmt::join(all, "; "),
                  has_unchecked_ ? ", and nodes behind these were not checked" : ""));
}

}  // namespace syncopate
