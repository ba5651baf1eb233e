// Repetitions of rows and columns that a file has as several nodes become one node. Keras enlarges
// a map by repeating: x [N, H, W, C] becomes [N, H, 1, W, C] (Unsqueeze), [N, H, 2, W, C] (Tile)
// and [N, 2 * H, W, C] (Reshape), with a Transpose of five axes in front of the Reshape at times.
#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "deploy/onnx/replaced_nodes.h"

namespace syncopate {
namespace {

using proto::onnx::NodeProto;

// One thread only.
class RepeatJoiner {
 public:
  explicit RepeatJoiner(OnnxFile& file) : graph_(file) { graph_.fold_constants(); }

  void join() {
    for (NodeProto& node : *graph_.file().mutable_graph().mutable_node()) {
      if (is(node, "Tile") && node.input_size() == 2 && node.output_size() == 1) {
        join_tile(node);
      }
    }
  }

 private:
  struct Repeated {
    std::int64_t axis;  // of the tiled value; the Unsqueeze added this side
    std::int64_t count;
    std::int64_t rank;
  };

  static bool is(const NodeProto& node, std::string_view op) {
    return is_standard(node) && node.op_type() == op;
  }

  NodeProto* only_reader(const NodeProto& node) const {
    const auto readers = graph_.readers(node.output(0));
    return readers.size() == 1 ? readers.front() : nullptr;
  }

  // Returns what a Tile repeats if that is the side of an Unsqueeze in front of it.
  std::optional<Repeated> repeated(const NodeProto& tile, const NodeProto& unsqueeze) const {
    const auto counts = graph_.constants().integers(tile.input(1));
    const auto axes = graph_.constants().integers(unsqueeze.input(1));
    if (!counts || !axes || axes->size() != 1) return std::nullopt;
    const auto rank = static_cast<std::int64_t>(counts->size());
    const std::int64_t axis = axes->front() < 0 ? axes->front() + rank : axes->front();
    if (axis < 2 || axis >= rank) return std::nullopt;
    for (std::int64_t i = 0; i < rank; ++i) {
      if (i != axis && (*counts)[static_cast<std::size_t>(i)] != 1) return std::nullopt;
    }
    return Repeated{axis, (*counts)[static_cast<std::size_t>(axis)], rank};
  }

  void join_tile(NodeProto& tile) {
    const NodeProto* unsqueeze = graph_.writer(tile.input(0));
    if (unsqueeze == nullptr || !is(*unsqueeze, "Unsqueeze") || unsqueeze->input_size() != 2)
      return;
    const std::string x = unsqueeze->input(0);
    const auto what = repeated(tile, *unsqueeze);
    NodeProto* reader = what ? only_reader(tile) : nullptr;
    if (reader == nullptr) return;
    if (is(*reader, "Transpose")) {
      const NodeProto* next = reader->output_size() == 1 ? only_reader(*reader) : nullptr;
      if (next == nullptr || !is(*next, "Reshape")) return;
      if (!remove_axis(*reader, *what)) return;
    } else if (!is(*reader, "Reshape")) {
      return;
    }
    tile.set_op_type("Repeat");
    tile.set_domain(kJoinedDomain);
    tile.clear_input();
    tile.add_input(x);
    add_integer(tile, "axis", what->axis - 1);
    add_integer(tile, "count", what->count);
  }

  // Takes the repeated axis out of a Transpose that keeps it behind the axis in front of it.
  static bool remove_axis(NodeProto& transpose, const Repeated& what) {
    if (transpose.attribute_size() != 1 || transpose.attribute(0).name() != "perm") return false;
    auto& attribute = *transpose.mutable_attribute(0);
    const std::vector<std::int64_t> order(attribute.ints().begin(), attribute.ints().end());
    const auto at = std::ranges::find(order, what.axis);
    const bool follows = static_cast<std::int64_t>(order.size()) == what.rank &&
                         at != order.end() && at != order.begin() && *(at - 1) == what.axis - 1;
    if (!follows) return false;
    attribute.clear_ints();
    for (const std::int64_t axis : order) {
      if (axis != what.axis) attribute.add_ints(axis > what.axis ? axis - 1 : axis);
    }
    return true;
  }

  OnnxGraph graph_;
};

}  // namespace

void join_repeats(OnnxFile& file) { RepeatJoiner(file).join(); }

}  // namespace syncopate
