// Finds out what the stored tensors of an ONNX file were in the program that wrote it: trained
// parameters, fixed numbers, or results that the exporter computed. Newer files of PyTorch list the
// parameters in their metadata. In other files the names of tensors show the origin.
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
  kUnclear,    // computed by the exporter, in most cases by exchanging the axes of a parameter
};

// Determines the origin of each stored tensor of one ONNX file, which must outlive this object. One
// thread only.
class OnnxOrigins {
 public:
  explicit OnnxOrigins(const OnnxFile& file);

  // Whether PyTorch wrote the file. In files of PyTorch parameters are stored tensors and never
  // Constant nodes.
  bool is_of_pytorch() const { return is_of_pytorch_; }
  // Returns the origin of a stored tensor of floats. reader: the node that has the tensor as an
  // input. is_one_number: whether the tensor may be a plain number. For the weights of a layer,
  // pass true only for a tensor without axes, because a bias or norm of one channel is a tensor
  // [1]. For other operators, such as Mul, pass true for any tensor of one element.
  OnnxOrigin of(const proto::onnx::NodeProto& reader, const std::string& tensor,
                bool is_one_number) const;
  // Whether the name of a tensor shows that the tensor was a parameter of the program that wrote
  // the file. False for a fixed number, such as the 6 of ReLU6, that a program for simplifying ONNX
  // files has stored under a new name.
  bool is_named_as_parameter(const proto::onnx::NodeProto& reader, const std::string& tensor) const;
  // Whether a weight or bias of a norm may be a constant that the exporter filled in, because the
  // norm does not train it, as with scale=False in Keras.
  bool may_be_filled(const std::string& tensor) const;
  bool is_of_tf2onnx() const { return is_of_tf2onnx_; }
  // Returns the name of the parameter that a node reads as the stored tensor `tensor`. Several
  // parameters may be stored as one tensor, because exporters store equal values once.
  std::string parameter(const proto::onnx::NodeProto& reader, const std::string& tensor) const;
  // Whether the output of an Identity has the name of a parameter. The older exporter of PyTorch
  // writes such an Identity for a parameter that has the same values as another parameter.
  bool is_parameter_of_identity(const std::string& output) const;
  // Whether the exporter left out the bias of a layer because it is zero, although PyTorch trains
  // the bias.
  bool lacks_zero_bias(const proto::onnx::NodeProto& layer) const;

 private:
  void read_signature(const std::string& signature);
  OnnxOrigin of_listed(const proto::onnx::NodeProto& reader, const std::string& tensor,
                       bool is_one_number) const;
  // Returns the parameters read by the PyTorch operation from which the node was exported.
  std::vector<std::string> parameters_of(const proto::onnx::NodeProto& node) const;

  bool is_of_pytorch_ = false;
  bool is_of_tf2onnx_ = false;
  bool is_own_ = false;  // whether `syncopate export --onnx` wrote the file
  std::set<std::string, std::less<>> stored_;
  // Maps the name of a parameter in the program of torch.export, such as "p_fc_weight", to its name
  // in PyTorch, such as "fc.weight". Empty if the file has no list of parameters.
  std::map<std::string, std::string, std::less<>> parameters_;
  std::set<std::string, std::less<>> trained_;    // names of parameters
  std::set<std::string, std::less<>> untrained_;  // names of buffers and constants
  // Whether one of the listed parameters is not a stored tensor, and no PyTorch operation from
  // which a node was exported reads this parameter. The exporter then computed a tensor from the
  // parameter, or the network does not use the parameter.
  bool has_lost_parameters_ = false;
};

// Whether the file shows that a node is a layer into which the exporter folded a batch norm.
bool has_folded_batch_norm(const proto::onnx::NodeProto& node);

}  // namespace syncopate
