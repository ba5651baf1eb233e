// What the stored tensors of an ONNX file were in the program that wrote it: parameters that it
// trained, fixed numbers, or results that the exporter computed. Newer files of PyTorch list the
// parameters in their metadata; in other files names of tensors show it.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "deploy/onnx/onnx_file.h"

namespace syncopate {

enum class OnnxOrigin : std::uint8_t {
  kParameter,  // trained, as far as the file shows
  kFixed,      // a number or buffer, which is not trained
  kComputed,   // computed from trained tensors
  kUnclear,    // computed by the exporter; mostly a parameter with its axes exchanged
};

// One thread only. Lives as long as its file.
class OnnxOrigins {
 public:
  explicit OnnxOrigins(const OnnxFile& file);

  // Whether PyTorch wrote the file: its parameters are stored tensors and never Constant nodes.
  bool is_of_pytorch() const { return is_of_pytorch_; }
  // Returns what a stored tensor of floats is. reader: the node that has it as an input.
  // is_one_number: whether it stands where a number may, such as in front of a Mul; for the weights
  // of a layer, whether it has no axes, since a bias or norm of one channel has one.
  OnnxOrigin of(const proto::onnx::NodeProto& reader, const std::string& tensor,
                bool is_one_number) const;
  // Whether the file names a tensor as a parameter of the program. Programs that simplify files
  // store fixed numbers, such as the 6 of ReLU6, as tensors with new names.
  bool is_named_as_parameter(const proto::onnx::NodeProto& reader, const std::string& tensor) const;
  // Whether a weight or bias of a norm may be the constant of a norm that trains none, such as of
  // scale=False in Keras.
  bool may_be_filled(const std::string& tensor) const;
  bool is_of_tf2onnx() const { return is_of_tf2onnx_; }
  // Returns the name of the parameter that a node reads as a stored tensor. Several parameters may
  // be stored as one tensor: exporters store equal values once.
  std::string parameter(const proto::onnx::NodeProto& reader, const std::string& tensor) const;
  // Whether the name of an Identity's output is a parameter's: the older exporter of PyTorch gives
  // a parameter with the values of another one in this way.
  bool is_parameter_of_identity(const std::string& output) const;
  // Whether the exporter left out a bias of zeros, which PyTorch trains.
  bool lacks_zero_bias(const proto::onnx::NodeProto& layer) const;

 private:
  void read_signature(const std::string& signature);
  OnnxOrigin of_listed(const proto::onnx::NodeProto& reader, const std::string& tensor,
                       bool is_one_number) const;
  // Returns the parameters that the operation of PyTorch reads that became the node.
  std::vector<std::string> parameters_of(const proto::onnx::NodeProto& node) const;

  bool is_of_pytorch_ = false;
  bool is_of_tf2onnx_ = false;
  bool is_own_ = false;  // written by export --onnx
  std::set<std::string, std::less<>> stored_;
  // By the names in the program of torch.export, such as p_fc_weight for fc.weight; empty if the
  // file has no list.
  std::map<std::string, std::string, std::less<>> parameters_;
  std::set<std::string, std::less<>> trained_;    // the parameters' names
  std::set<std::string, std::less<>> untrained_;  // names of buffers and constants
  // Whether a parameter is neither stored nor read by an operation that became a node: the exporter
  // computed a tensor from it, or the network does not use it.
  bool has_lost_parameters_ = false;
};

// Whether a node is a layer into which the exporter folded a batch norm, as far as the file shows.
bool has_folded_batch_norm(const proto::onnx::NodeProto& node);

}  // namespace syncopate
