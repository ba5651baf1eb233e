// Reads the fields of a node from the text of a network. Error messages name the node and, in a
// network file, its line. The reader in graph_parser.cc derives from this class.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "models/base/errors.h"
#include "models/graph/operation_row.h"

namespace syncopate {

// A network's text. In the text of a checkpoint, `path` is empty and `data` is null.
struct NetworkText {
  const nlohmann::ordered_json* json = nullptr;  // a NodeReader requires that it is not null
  std::string path;
  std::vector<int> lines;  // the line of each node, counted from 1
  const NetworkInput* data = nullptr;
};

// Returns the JSON of a value for a message, cut if it is long.
std::string shown(const nlohmann::ordered_json& value);

class NodeReader {
 public:
  NodeReader(const NetworkText& source, NodeId number);

 protected:
  using Json = nlohmann::ordered_json;

  // Returns `what`, preceded by the place of the node in the text, for a message.
  std::string located(const std::string& what) const;
  [[noreturn]] void refuse(const std::string& what) const { throw UsageError(located(what)); }
  // Reads the field "op" of the node into op_ and returns the OperationRow of this operation.
  // Returns null if no operation in network texts has this name. expected: what "op" should be, for
  // the message if it is missing.
  const OperationRow* read_op(const char* expected);
  // Throws UsageError if the node has a field that is neither in `fields` nor one of "op", "name"
  // and "inputs", which every node may have.
  void check_fields(std::span<const Field> fields) const;
  // Reads the fields of an operation into the variables to which `fields` points.
  void read_fields(std::span<const Field> fields) const;
  bool has(const char* key) const;
  // Returns the value of a field. type: the name of the expected type in messages, such as "a
  // list".
  template <typename T>
  T get(const char* key, std::string_view type) const;
  // Returns `value` as a whole number from `least` to `most`. key: the field that the value belongs
  // to, for messages.
  std::int64_t integer(const char* key, const Json& value, std::int64_t least,
                       std::int64_t most) const;

  const NetworkText& text_;
  const Json& json_;
  const NodeId number_;
  std::string op_;
  std::string name_;

 private:
  void read(const char* key, const WholeField& field) const;
  void read(const char* key, const ChannelsField& field) const;
  void read(const char* key, const NumberField& field) const;
  void read(const char* key, const FlagField& field) const;
  void read(const char* key, const KernelField& field) const;
  void read(const char* key, const PaddingField& field) const;
  void read(const char* key, const ShapeField& field) const;
  void read(const char* key, const NumbersField& field) const;
  void read(const char* key, const OrderField& field) const;
  void read(const char* key, const AxesField& field) const;
  template <typename Enum>
  void read(const char* key, const ChoiceField<Enum>& field) const;
  // Returns the list in the field `key`, which holds distinct axes from 0 to 2.
  std::vector<int> axes(const char* key) const;
  int window(const char* key, const Json& value, std::int64_t least) const {
    return static_cast<int>(integer(key, value, least, kLargestWindow));
  }
};

}  // namespace syncopate
