// All facts about an operation that do not depend on a backend, in one row per operation. The rows
// determine the texts of networks (graph_text.cc and graph_parser.cc), the help of `syncopate
// network` and the work that the benchmark of steps counts. To support an operation, a backend has
// an overload of its make_group().
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "models/graph/graph.h"
#include "models/graph/group_bytes.h"
#include "models/graph/network_input.h"

namespace syncopate {

// The largest number of channels in a network's text. Sizes in texts are bounded so that products
// of sizes fit in 64 bits.
inline constexpr std::int64_t kMostChannels = 1 << 24;
inline constexpr std::int64_t kLargestSide = 1 << 16;  // largest height or width of an input
// The upper limit of windows, strides and paddings in a network's text.
inline constexpr std::int64_t kLargestWindow = 1 << 7;
// If OperationRow::inputs has this value, the operation reads from 2 to kSeveralInputs inputs.
inline constexpr std::size_t kSeveralInputs = 1000;

// A node as the text of a network describes it, with everything that GraphBuilder needs to add the
// node.
struct NodeDraft {
  Operation operation;
  std::string name;  // the name of the node; empty: none
  std::vector<NodeId> inputs;
  Shape shape;       // shape of the output
  int channels = 0;  // size of the output's last axis
  Init init = Init::kGlorotUniform;
  // The properties of the data, which give the number of channels if the text has "classes" in
  // place of this number. Otherwise null.
  const NetworkInput* classes_of = nullptr;
};

// The structs below are the kinds of fields that a node has in a network's text. `value` is the
// address that a reader of the text writes to and that a writer of the text reads from.
struct WholeField {
  int* value;
  std::int64_t least = 1;
  std::int64_t most = kLargestWindow;
};
struct ChannelsField {  // a whole number, or "classes"
  int* value;
  const NetworkInput** classes_of;
};
struct NumberField {
  float* value;
  float least;
  float most;
  bool excludes_least = false;
  bool excludes_most = false;
  const char* why_required = "";  // the message if a required number is absent
};
struct FlagField {
  bool* value;
};
struct KernelField {  // one number, or [height, width]
  int* height;
  int* width;
};
struct PaddingField {  // one number, or [top, left, bottom, right]
  Padding* value;
};
struct ShapeField {
  Shape* value;
  std::int64_t largest;  // largest size of an axis, except the last axis
};
struct NumbersField {
  std::vector<float>* value;
  bool is_positive = false;
};
struct OrderField {
  std::array<int, 3>* value;
};
struct AxesField {
  std::array<bool, 3>* value;
};
template <typename Enum>
struct ChoiceField {
  Enum* value;
  std::string_view what;  // such as "mode"
  std::span<const Enum> all;
};

struct Field {
  const char* key;
  std::variant<WholeField, ChannelsField, NumberField, FlagField, KernelField, PaddingField,
               ShapeField, NumbersField, OrderField, AxesField, ChoiceField<DType>,
               ChoiceField<Init>, ChoiceField<Interpolation>>
      value;
  bool is_required = false;
  bool is_written = true;
};

struct OperationRow {
  Operation defaults = ReluOp{};
  std::string_view name = {};       // the name in texts, such as "conv2d"
  std::string_view noun = {};       // the name in tables, such as "convolution"; empty: `name`
  std::size_t inputs = 1;           // number of values that the operation reads
  std::string_view why_named = {};  // why a node must have a name; empty: it may have none
  // Returns the fields that a node of this operation has in the text of a network, in the order of
  // the text; a shape comes first. The fields refer to the members of the NodeDraft. An empty
  // function: the operation does not occur in texts.
  std::function<std::vector<Field>(NodeDraft&)> fields = {};
  std::function<NodeId(GraphBuilder&, NodeDraft&)> add = {};  // empty for losses
  // Returns the multiply-adds of a forward pass of one sample; null: the operation has none.
  std::int64_t (*multiply_adds)(const Graph&, const Node&) = nullptr;
  GroupBytes (*bytes)(const GroupValues&) = copied;
  // The elements moved per sample: `input` times the elements of the first input plus `output`
  // times the elements of the output. If the operation has multiply-adds, this is the count of each
  // of its passes (forward, weight gradient, input gradient); otherwise of the whole training step.
  struct {
    double input = 0.0;
    double output = 0.0;
  } moved = {};
  // The text about the operation in `network --help`. If several rows share a line, only the last
  // of them has a text.
  std::string_view help = {};
  std::string_view remark = {};  // printed after the name
  bool shares_line = false;      // whether it shares its line with the next row

  std::string_view shown_noun() const { return noun.empty() ? name : noun; }
};

// Returns the rows of all operations, in the order of `network --help`. The losses come last.
const std::vector<OperationRow>& operation_rows();
const OperationRow& row_of(const Operation& operation);

// Returns the text of `network --help` about the operations: their names, fields and defaults.
std::string describe_operations();

}  // namespace syncopate
