#include "bench/step/group_profile.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "bench/harness/report.h"
#include "models/graph/program_plan.h"

namespace syncopate::bench {
namespace {

std::string_view name_of(GroupKind kind) {
  switch (kind) {
    case GroupKind::kInput:
      return "input";
    case GroupKind::kConv:
    case GroupKind::kConvReluPool:
      return "convolution";
    case GroupKind::kConvTranspose:
      return "transposed convolution";
    case GroupKind::kBatchNorm:
      return "batch norm";
    case GroupKind::kLayerNorm:
      return "layer norm";
    case GroupKind::kDropout:
      return "dropout";
    case GroupKind::kRelu:
      return "ReLU";
    case GroupKind::kActivation:
      return "activation";
    case GroupKind::kAdd:
      return "addition";
    case GroupKind::kMultiply:
      return "product";
    case GroupKind::kConcat:
      return "concatenation";
    case GroupKind::kSlice:
      return "slice";
    case GroupKind::kUpsample:
      return "upsampling";
    case GroupKind::kSoftmax:
      return "softmax";
    case GroupKind::kReshape:
      return "reshape";
    case GroupKind::kTranspose:
      return "transpose";
    case GroupKind::kReduceMean:
      return "mean";
    case GroupKind::kMatmul:
      return "matrix product";
    case GroupKind::kMaxPool:
      return "max-pooling";
    case GroupKind::kAveragePool:
    case GroupKind::kGlobalAveragePool:
      return "average pooling";
    case GroupKind::kFlatten:
      return "flatten";
    case GroupKind::kDense:
      return "dense";
    case GroupKind::kShortcut:
      return "shortcut";
    case GroupKind::kLoss:
      return "loss";
  }
  return "unknown";
}

// The time and the bytes of all groups of one kind in one pass.
struct KindSum {
  int groups = 0;
  double seconds = 0.0;
  double bytes = 0.0;
};

}  // namespace

std::vector<GroupBytes> count_group_bytes(const Graph& graph, const std::vector<FusedGroup>& groups,
                                          std::int64_t batch_size, std::int64_t element_bytes) {
  const auto bytes_of = [&](NodeId id) {
    const Shape& shape = graph.nodes[static_cast<std::size_t>(id)].shape;
    return static_cast<double>(num_elements(shape) * batch_size * element_bytes);
  };
  std::vector<GroupBytes> counted;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const FusedGroup& group = groups[i];
    const double output = bytes_of(group.output);
    double inputs = 0.0;
    double input_gradients = 0.0;
    for (const NodeId input : group.inputs) {
      inputs += bytes_of(input);
      if (has_gradient(groups, input)) input_gradients += bytes_of(input);
    }
    const double gradients = output * static_cast<double>(consumers_of(groups, i).size());
    GroupBytes bytes;
    switch (group.kind) {
      case GroupKind::kInput:  // pixels are bytes
        bytes.forward = output + output / static_cast<double>(element_bytes);
        break;
      case GroupKind::kConv:
      case GroupKind::kConvReluPool:
      case GroupKind::kConvTranspose:
      case GroupKind::kDense:
        bytes.forward = inputs + output;
        // The weight's gradient reads input and gradient; the input's reads the gradient again.
        bytes.backward = inputs + gradients;
        if (input_gradients > 0.0) bytes.backward += gradients + input_gradients;
        break;
      case GroupKind::kBatchNorm: {
        const double x = bytes_of(group.inputs.front());
        const double mask = group.relu ? output / 16.0 : 0.0;  // a byte for 16 bytes of the output
        bytes.forward = x + inputs + output + mask;            // the sums read x, too
        // The first backward pass reads x, gradients and mask, and stores the gradient of an added
        // map, which the second pass then reads in place of gradients and mask.
        bytes.backward = 2.0 * x + gradients + mask + input_gradients;
        bytes.backward += group.add ? output : gradients + mask;
        break;
      }
      case GroupKind::kLayerNorm:
        bytes.forward = inputs + output;
        bytes.backward = 2.0 * (inputs + gradients) + input_gradients;
        break;
      case GroupKind::kMaxPool: {
        const double positions = output / static_cast<double>(element_bytes);  // a byte each
        bytes.forward = inputs + output + positions;
        bytes.backward = gradients + positions + input_gradients;
        break;
      }
      case GroupKind::kRelu:
      case GroupKind::kSoftmax:
        bytes.forward = inputs + output;
        bytes.backward = gradients + output + input_gradients;
        break;
      case GroupKind::kActivation:
      case GroupKind::kMultiply:
      case GroupKind::kMatmul:
        bytes.forward = inputs + output;
        bytes.backward = gradients + inputs + input_gradients;
        break;
      case GroupKind::kLoss:
        bytes.forward = inputs + input_gradients;  // the forward pass writes the gradient
        break;
      case GroupKind::kDropout:
      case GroupKind::kAdd:
      case GroupKind::kConcat:
      case GroupKind::kAveragePool:
      case GroupKind::kGlobalAveragePool:
      case GroupKind::kFlatten:
      case GroupKind::kSlice:
      case GroupKind::kUpsample:
      case GroupKind::kReshape:
      case GroupKind::kTranspose:
      case GroupKind::kReduceMean:
      case GroupKind::kShortcut:
        bytes.forward = inputs + output;
        bytes.backward = gradients + input_gradients;
        break;
    }
    counted.push_back(bytes);
  }
  return counted;
}

std::string describe_groups(const std::vector<GroupProfile>& groups) {
  std::map<std::pair<std::string_view, std::string_view>, KindSum> sums;  // by kind and pass
  double total = 0.0;
  const auto add = [&](const GroupProfile& group, std::string_view pass, double seconds,
                       double bytes) {
    KindSum& sum = sums[{name_of(group.time.group.kind), pass}];
    ++sum.groups;
    sum.seconds += seconds;
    sum.bytes += bytes;
    total += seconds;
  };
  for (const GroupProfile& group : groups) {
    add(group, "forward", group.time.forward_seconds, group.bytes.forward);
    if (group.bytes.backward > 0.0) {
      add(group, "backward", group.time.backward_seconds, group.bytes.backward);
    }
  }
  std::vector<std::pair<std::pair<std::string_view, std::string_view>, KindSum>> sorted(
      sums.begin(), sums.end());
  std::ranges::stable_sort(
      sorted, [](const auto& a, const auto& b) { return a.second.seconds > b.second.seconds; });
  std::vector<std::vector<std::string>> rows{{"groups", "pass", "number", "ms", "%", "GB", "GB/s"}};
  for (const auto& [key, sum] : sorted) {
    rows.push_back({std::string(key.first), std::string(key.second), std::to_string(sum.groups),
                    number_text(1e3 * sum.seconds), number_text(100.0 * sum.seconds / total),
                    number_text(1e-9 * sum.bytes), number_text(1e-9 * sum.bytes / sum.seconds)});
  }
  return format_table(rows) + "all groups, started one by one: " + number_text(1e3 * total) +
         " ms, without the update\n";
}

nlohmann::json groups_json(const Graph& graph, const std::vector<GroupProfile>& groups) {
  nlohmann::json list = nlohmann::json::array();
  for (const GroupProfile& group : groups) {
    const Node& output = graph.nodes[static_cast<std::size_t>(group.time.group.output)];
    list.push_back({{"kind", name_of(group.time.group.kind)},
                    {"output", output.shape},
                    {"forward_seconds", group.time.forward_seconds},
                    {"backward_seconds", group.time.backward_seconds},
                    {"forward_bytes", group.bytes.forward},
                    {"backward_bytes", group.bytes.backward}});
  }
  return list;
}

}  // namespace syncopate::bench
