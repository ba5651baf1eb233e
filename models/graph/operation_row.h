// All facts of an operation that do not depend on a backend, one row per operation. The rows
// determine the texts of networks (graph_text.cc and graph_parser.cc), the help of `syncopate
// network` and the work that the benchmark of steps counts. A backend computes an operation by an
// overload of its make_group().
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

// The most channels in a text. The bounds of a text's sizes keep products of them below 64 bits.
inline constexpr std::int64_t kMostChannels = 1 << 24;
inline constexpr std::int64_t kLargestSide = 1 << 16;   // of an input, in pixels
inline constexpr std::int64_t kLargestWindow = 1 << 7;  // and the largest stride and padding
inline constexpr std::size_t kSeveralInputs = 1000;     // two or more, up to this number

// A node as a text describes it: what GraphBuilder needs to add it.
struct NodeDraft {
  Operation operation;
  std::string name;  // empty: none
  std::vector<NodeId> inputs;
  Shape shape;       // of the output
  int channels = 0;  // of the output: its last side
  Init init = Init::kGlorotUniform;
  // The node gives the classes of this data; null if its text has a number instead.
  const NetworkInput* classes_of = nullptr;
};

// The kinds of fields that a node has in a text. Each has the address of the value that a reader
// sets and a writer reads.
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
struct KernelField {  // one side, or height and width
  int* height;
  int* width;
};
struct PaddingField {  // one number, or top, left, bottom, right
  Padding* value;
};
struct ShapeField {
  Shape* value;
  std::int64_t largest;  // of the sides but the last
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
  std::string_view name = {};       // in texts, such as "conv2d"
  std::string_view noun = {};       // in tables, such as "convolution"; empty: the name
  std::size_t inputs = 1;           // how many values it reads
  std::string_view why_named = {};  // why a node must have a name; empty: it need not
  // Returns the fields in the order of texts, a shape first. Empty: no text has the operation.
  std::function<std::vector<Field>(NodeDraft&)> fields = {};
  std::function<NodeId(GraphBuilder&, NodeDraft&)> add = {};  // empty: a loss, the last node
  // Of a forward pass of one sample; null: none.
  std::int64_t (*multiply_adds)(const Graph&, const Node&) = nullptr;
  GroupBytes (*bytes)(const GroupValues&) = copied;
  // The elements that a training step moves for a sample, as multiples of the elements of the first
  // input and of the output. They are counted per pass if the operation has multiply-adds.
  struct {
    double input = 0.0;
    double output = 0.0;
  } moved = {};
  // For `network --help`. Rows that share a line have the help at the last one.
  std::string_view help = {};
  std::string_view remark = {};  // behind the name
  bool shares_line = false;      // with the next row

  std::string_view shown_noun() const { return noun.empty() ? name : noun; }
};

// Returns the rows in the order of the help; the losses are the last ones.
const std::vector<OperationRow>& operation_rows();
const OperationRow& row_of(const Operation& operation);

// Returns the operations with their fields and defaults, as lines for a person.
std::string describe_operations();

}  // namespace syncopate
