// Reads an ONNX file: the protobuf messages in its bytes, and the values of its tensors. The
// meaning of operators is left to other files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <istream>
#include <string>
#include <string_view>
#include <vector>

#include "deploy/onnx/proto/onnx.pb.h"
#include "models/tensor/tensor.h"

namespace syncopate {

// Reads one ONNX file into memory and checks the tensors that are read. All functions throw
// FileError with the name of the file. One thread only.
class OnnxFile {
 public:
  // Parses the file from a stream of its bytes. Throws UsageError for an opset that is not between
  // kOldestOpset and kNewestOpset.
  OnnxFile(std::filesystem::path path, std::istream& bytes);

  const std::filesystem::path& path() const noexcept { return path_; }
  const proto::onnx::GraphProto& graph() const noexcept { return model_.graph(); }
  proto::onnx::GraphProto& mutable_graph() noexcept { return *model_.mutable_graph(); }
  std::int64_t opset() const noexcept { return opset_; }
  // Returns the metadata entry `key` of the model; "" if there is none.
  std::string metadata(std::string_view key) const;
  // The program that wrote the file, such as "pytorch".
  const std::string& producer() const noexcept { return model_.producer_name(); }

  // Returns the other files, in the same folder, that have tensors of this file.
  std::vector<std::filesystem::path> other_files() const;

  // Returns the shape of a tensor. The number of elements is at most kMostTensorElements.
  Shape shape_of(const proto::onnx::TensorProto& tensor) const;
  // is_float() returns whether the tensor has a floating-point type that read_floats() can convert.
  // is_integer() returns whether it has an integer type that read_integers() can convert.
  static bool is_float(const proto::onnx::TensorProto& tensor) noexcept {
    return is_float_type(tensor.data_type());
  }
  static bool is_float_type(std::int32_t type) noexcept;
  static bool is_integer(const proto::onnx::TensorProto& tensor) noexcept;
  std::vector<float> read_floats(const proto::onnx::TensorProto& tensor) const;
  std::vector<std::int64_t> read_integers(const proto::onnx::TensorProto& tensor) const;

  [[noreturn]] void damaged(const std::string& why) const;

 private:
  void check_opset();
  // Returns the bytes of a tensor's elements. size: the number of bytes that the tensor's shape and
  // type require. Throws FileError if the tensor has another number of bytes.
  std::string bytes_of(const proto::onnx::TensorProto& tensor, std::uint64_t size) const;
  std::string external_bytes(const proto::onnx::TensorProto& tensor, std::uint64_t size) const;
  template <typename Stored, typename Values>
  std::vector<Stored> typed(const proto::onnx::TensorProto& tensor, const Values& values) const;

  std::filesystem::path path_;
  proto::onnx::ModelProto model_;
  std::int64_t opset_ = 0;
};

// Returns a text of the file for a message. Long texts are cut, and control characters are
// replaced.
std::string shown_name(const std::string& name);
// Returns the name of a node for a message, or the name of its output if the node has none.
std::string node_name(const proto::onnx::NodeProto& node);
// Returns a list of the first few names, for a message.
std::string listed_names(const std::vector<std::string>& names);
// Whether the operator is in the standard domain of ONNX. Operators of other domains may have the
// same names.
bool is_standard(const proto::onnx::NodeProto& node);
// The domain of the nodes Silu, Part and Repeat, which join_activations(), join_parts() and
// join_repeats() write. Each replaces several nodes of a file.
inline constexpr const char* kJoinedDomain = "syncopate.joined";
// Returns the operator's name. An operator outside the standard domain of ONNX has its domain in
// front, such as "com.acme::Relu".
std::string operator_name(const proto::onnx::NodeProto& node);

}  // namespace syncopate
