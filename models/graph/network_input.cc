#include "models/graph/network_input.h"

#include <fmt/format.h>

namespace syncopate {

Shape NetworkInput::logits_shape() const {
  Shape shape = target_shape;
  if (target_dtype != DType::kF32) shape.push_back(classes);
  return shape;
}

LossOp NetworkInput::loss() const {
  return {.kind = target_dtype == DType::kF32 ? LossKind::kMeanSquaredError
                                              : LossKind::kSoftmaxCrossEntropy};
}

std::string why_loss_does_not_fit(LossKind loss, DType target_dtype) {
  if (has_classes(loss) == (target_dtype != DType::kF32)) return "";
  if (has_classes(loss)) {
    return fmt::format(
        "{} needs classes as targets, and the data have numbers; end the network with {} or {}, or "
        "give integers as targets",
        name(loss), name(LossKind::kMeanSquaredError), name(LossKind::kBinaryCrossEntropy));
  }
  return fmt::format(
      "{} needs numbers as targets, and the data have classes; end the network with {}, or give "
      "float32 targets",
      name(loss), name(LossKind::kSoftmaxCrossEntropy));
}

NodeId add_classifier(GraphBuilder& build, NodeId x, const std::string& name,
                      const NetworkInput& input, Init init, DenseOp last) {
  if (input.head.empty()) return build.dense(x, name, input.classes, init, last);
  int index = 0;
  for (const int features : input.head) {
    x = build.relu(build.dense(x, fmt::format("{}.{}", name, index), features, init));
    index += 2;
  }
  return build.dense(x, fmt::format("{}.{}", name, index), input.classes, init, last);
}

}  // namespace syncopate
