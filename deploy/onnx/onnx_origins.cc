#include "deploy/onnx/onnx_origins.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "models/base/lower_case.h"

namespace syncopate {
namespace {

using proto::onnx::NodeProto;

constexpr std::string_view kSignature = "pkg.torch.export.ExportedProgram.graph_signature";

std::string property(const NodeProto& node, std::string_view key) {
  for (const auto& entry : node.metadata_props()) {
    if (entry.key() == key) return entry.value();
  }
  return "";
}

// Returns the operation of PyTorch that became a node, such as "%linear : ...target=torch.ops.
// aten.linear.default](args = (%x, %p_fc_weight), ...)".
std::string operation_of(const NodeProto& node) { return property(node, "pkg.torch.onnx.fx_node"); }

std::string target_of(const std::string& operation) {
  const std::size_t begin = operation.find("target=");
  if (begin == std::string::npos) return "";
  return operation.substr(begin, operation.find(']', begin) - begin);
}

// Calls `visit` with each name behind a % among the arguments of an operation.
template <typename Visit>
void for_each_argument(const std::string& operation, const Visit& visit) {
  std::size_t at = operation.find("(args = ");
  while (at != std::string::npos && (at = operation.find('%', at)) != std::string::npos) {
    std::size_t end = at + 1;
    const auto is_of_name = [](char letter) {
      return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_';
    };
    while (end < operation.size() && is_of_name(operation[end])) ++end;
    visit(operation.substr(at + 1, end - at - 1));
    at = end;
  }
}

// Returns a name without the number behind it, such as "mul" of "mul_2".
std::string_view without_number(std::string_view name) {
  std::size_t end = name.size();
  while (end > 0 && std::isdigit(static_cast<unsigned char>(name[end - 1])) != 0) --end;
  return end < name.size() && end > 0 && name[end - 1] == '_' ? name.substr(0, end - 1) : name;
}

bool is_one_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::ranges::find(names, name) != names.end();
}

// Whether an operation of this name, in lower case, only changes the shape.
bool is_of_shapes(std::string_view name) {
  return is_one_of(name, {"t", "transpose", "permute", "view", "reshape", "squeeze", "unsqueeze",
                          "flatten", "clone", "contiguous", "identity", "cast", "castlike"});
}

// Returns the part of a value's name that shows its operator, in lower case and without numbers:
// "mul" of "/fc/Mul_output_0" and of "net/layer/mul_1:0".
std::string operator_of_value(const std::string& value) {
  std::string last = lower_case(value.substr(value.rfind('/') + 1));
  last = last.substr(0, std::min(last.find(':'), last.find("_output_")));
  return std::string(without_number(last));
}

bool is_arithmetic(std::string_view name) {
  return is_one_of(name,
                   {"mul", "add",     "addv2", "sub",      "div",   "truediv", "realdiv", "neg",
                    "pow", "square",  "sqrt",  "rsqrt",    "exp",   "maximum", "minimum", "max",
                    "min", "sigmoid", "tanh",  "softplus", "where", "selectv2"});
}

// Whether a program made a name for a constant, such as "const_fold_opt__21", "Constant_3" and
// "fill_constant_1.tmp_0".
bool is_of_constant(const std::string& value) {
  const std::string text = lower_case(value);
  const auto is_letter = [](char each) { return each >= 'a' && each <= 'z'; };
  for (std::size_t begin = 0; begin < text.size();) {
    std::size_t end = begin;
    while (end < text.size() && is_letter(text[end])) ++end;
    if (is_one_of(std::string_view(text).substr(begin, end - begin), {"const", "constant"})) {
      return true;
    }
    begin = end + 1;
  }
  return false;
}

bool starts_with_batch_norm(std::string_view part) {
  return part == "batchnorm" || part.starts_with("batchnormalization") ||
         part.starts_with("batch_normalization") || part.starts_with("fusedbatchnorm");
}

// Whether a part of a value's name, between slashes, is a batch norm's.
bool is_of_batch_norm(const std::string& value) {
  const std::string text = lower_case(value);
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('/', begin), text.size());
    if (starts_with_batch_norm(std::string_view(text).substr(begin, end - begin))) return true;
    begin = end + 1;
  }
  return false;
}

}  // namespace

bool has_folded_batch_norm(const NodeProto& node) {
  if (!is_one_of(node.op_type(), {"Conv", "ConvTranspose", "Gemm", "MatMul"})) return false;
  const std::string rule = lower_case(property(node, "pkg.onnxscript.rewriter.rule_name"));
  if (rule.find("batchnorm") != std::string::npos) return true;
  const std::string target = target_of(operation_of(node));
  if (target.find("batch_norm") != std::string::npos) return true;
  // The newer exporter of PyTorch names a layer's output so where a batch norm gave it, which has
  // several outputs.
  if (node.output_size() == 1 && node.output(0).starts_with("getitem")) return true;
  // The older exporter of PyTorch gives both new tensors names of its own.
  const bool is_convolution = node.op_type().starts_with("Conv");
  if (is_convolution && node.input_size() > 2 && node.input(1).starts_with("onnx::Conv") &&
      node.input(2).starts_with("onnx::Conv")) {
    return true;
  }
  for (int i = 1; i < node.input_size(); ++i) {
    if (is_of_batch_norm(node.input(i))) return true;
  }
  return std::ranges::any_of(node.output(), is_of_batch_norm);
}

OnnxOrigins::OnnxOrigins(const OnnxFile& file)
    : is_of_pytorch_(file.producer() == "pytorch"),
      is_of_tf2onnx_(file.producer() == "tf2onnx"),
      is_own_(file.producer() == "syncopate") {
  for (const auto& tensor : file.graph().initializer()) stored_.insert(tensor.name());
  for (const auto& entry : file.graph().metadata_props()) {
    if (entry.key() == kSignature) read_signature(entry.value());
  }
  std::set<std::string> read;
  for (const NodeProto& node : file.graph().node()) {
    for_each_argument(operation_of(node), [&](const std::string& name) { read.insert(name); });
  }
  for (const auto& [name, parameter] : parameters_) {
    has_lost_parameters_ =
        has_lost_parameters_ || (!stored_.contains(parameter) && !read.contains(name));
  }
}

// Lines such as "p_fc_weight: PARAMETER target='fc.weight'".
void OnnxOrigins::read_signature(const std::string& signature) {
  for (std::size_t begin = 0; begin < signature.size();) {
    const std::size_t end = std::min(signature.find('\n', begin), signature.size());
    const std::string line = signature.substr(begin, end - begin);
    begin = end + 1;
    constexpr std::string_view kTarget = " target='";
    const std::size_t colon = line.find(": ");
    const std::size_t target = line.find(kTarget);
    const std::size_t last = line.rfind('\'');
    if (colon == std::string::npos || target == std::string::npos || target < colon + 2) {
      continue;
    }
    const std::size_t first = target + kTarget.size();
    if (last < first) continue;
    const std::string name = line.substr(first, last - first);
    if (line.compare(colon + 2, target - colon - 2, "PARAMETER") == 0) {
      parameters_.emplace(line.substr(0, colon), name);
      trained_.insert(name);
    } else {
      untrained_.insert(name);
    }
  }
}

std::vector<std::string> OnnxOrigins::parameters_of(const NodeProto& node) const {
  std::vector<std::string> found;
  for_each_argument(operation_of(node), [&](const std::string& name) {
    const auto parameter = parameters_.find(name);
    if (parameter != parameters_.end()) found.push_back(parameter->second);
  });
  return found;
}

std::string OnnxOrigins::parameter(const NodeProto& reader, const std::string& tensor) const {
  const std::vector<std::string> all = parameters_of(reader);
  if (all.empty() || std::ranges::find(all, tensor) != all.end() || has_folded_batch_norm(reader)) {
    return tensor;
  }
  const auto last = [](const std::string& name) { return name.substr(name.rfind('.') + 1); };
  const bool is_listed = trained_.contains(tensor);
  std::vector<std::string> likely;
  std::ranges::copy_if(all, std::back_inserter(likely), [&](const std::string& name) {
    return is_listed ? last(name) == last(tensor) : !stored_.contains(name) && last(name) != "bias";
  });
  return likely.size() == 1 ? likely.front() : tensor;
}

bool OnnxOrigins::is_named_as_parameter(const NodeProto& reader, const std::string& tensor) const {
  if (!parameters_.empty()) {
    const OnnxOrigin origin = of_listed(reader, tensor, true);
    return origin == OnnxOrigin::kParameter || origin == OnnxOrigin::kComputed;
  }
  if (is_own_) return false;
  if (is_of_tf2onnx_) return tensor.find("ReadVariableOp") != std::string::npos;
  // A path of modules, such as "act.bound"; the older exporter of PyTorch keeps the names of
  // parameters without a module, too.
  if (tensor.find_first_of("/:") != std::string::npos || is_of_constant(tensor)) return false;
  if (tensor.find('.') != std::string::npos) return true;
  const bool is_of_program =
      !tensor.empty() && std::isdigit(static_cast<unsigned char>(tensor[0])) == 0;
  return is_of_pytorch_ && is_of_program && !tensor.starts_with("val_") &&
         !is_one_of(lower_case(tensor), {"min", "max"});
}

bool OnnxOrigins::may_be_filled(const std::string& tensor) const {
  if (is_of_tf2onnx_) return tensor.find("ReadVariableOp") == std::string::npos;
  return !is_own_ && !is_of_pytorch_ && tensor.find('.') == std::string::npos;
}

bool OnnxOrigins::is_parameter_of_identity(const std::string& output) const {
  return is_of_pytorch_ && parameters_.empty() && output.find('/') == std::string::npos &&
         output.find("::") == std::string::npos && output.find('.') != std::string::npos;
}

bool OnnxOrigins::lacks_zero_bias(const NodeProto& layer) const {
  if (layer.input_size() < 2 || has_folded_batch_norm(layer)) return false;
  const std::string weight = parameter(layer, layer.input(1));
  return std::ranges::any_of(parameters_of(layer), [&](const std::string& name) {
    return name != weight && (name == "bias" || name.ends_with(".bias"));
  });
}

OnnxOrigin OnnxOrigins::of_listed(const NodeProto& reader, const std::string& tensor,
                                  bool is_one_number) const {
  if (trained_.contains(tensor) || has_folded_batch_norm(reader)) return OnnxOrigin::kParameter;
  if (untrained_.contains(tensor)) return OnnxOrigin::kFixed;
  bool is_of_program = false;  // a value of the program that was exported, not of an operator's
  for_each_argument(operation_of(reader),
                    [&](const std::string& name) { is_of_program |= name == tensor; });
  if (is_of_program) {
    if (!has_lost_parameters_) return OnnxOrigin::kFixed;
    const bool is_plain = !is_one_number && is_of_shapes(without_number(tensor));
    return is_plain ? OnnxOrigin::kUnclear : OnnxOrigin::kComputed;
  }
  const bool is_trained = std::ranges::any_of(
      parameters_of(reader),
      [&](const std::string& parameter) { return !stored_.contains(parameter); });
  return is_trained ? OnnxOrigin::kParameter : OnnxOrigin::kFixed;
}

OnnxOrigin OnnxOrigins::of(const NodeProto& reader, const std::string& tensor,
                           bool is_one_number) const {
  if (!parameters_.empty()) return of_listed(reader, tensor, is_one_number);
  const OnnxOrigin fixed_number = is_one_number ? OnnxOrigin::kFixed : OnnxOrigin::kUnclear;
  if (is_own_) return is_one_number ? OnnxOrigin::kFixed : OnnxOrigin::kParameter;
  if (is_of_tf2onnx_) {
    if (tensor.find("ReadVariableOp") != std::string::npos || has_folded_batch_norm(reader)) {
      return OnnxOrigin::kParameter;
    }
    if (is_arithmetic(operator_of_value(tensor))) return OnnxOrigin::kComputed;
    // TensorFlow multiplies by the reciprocal of a constant divisor, be that trained or not.
    if (tensor.find("_recip") != std::string::npos) return OnnxOrigin::kUnclear;
    return is_one_number ? OnnxOrigin::kFixed : OnnxOrigin::kParameter;
  }
  if (!is_of_pytorch_) {
    const bool is_unclear = is_one_number && is_of_constant(tensor);
    return is_unclear ? OnnxOrigin::kUnclear : OnnxOrigin::kParameter;
  }
  if (tensor.starts_with("val_")) return fixed_number;
  if (tensor.starts_with("onnx::")) {
    if (has_folded_batch_norm(reader)) return OnnxOrigin::kParameter;
    const bool is_plain = tensor.starts_with("onnx::MatMul_") || tensor.starts_with("onnx::Add_");
    return is_plain && !is_one_number ? OnnxOrigin::kUnclear : OnnxOrigin::kComputed;
  }
  if (tensor.find("_output_") == std::string::npos) return OnnxOrigin::kParameter;
  const std::string op = operator_of_value(tensor);  // written by a program that simplified it
  if (op == "constant") return OnnxOrigin::kFixed;
  return is_of_shapes(op) && !is_one_number ? OnnxOrigin::kUnclear : OnnxOrigin::kComputed;
}

}  // namespace syncopate
