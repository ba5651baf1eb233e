#include "deploy/onnx/onnx_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <utility>

#include "deploy/onnx/onnx_network.h"
#include "models/base/errors.h"
#include "worker/checkpoint/element_types.h"

namespace syncopate {
namespace {

using proto::onnx::NodeProto;
using proto::onnx::TensorProto;

constexpr int kMostOnnxNodes = 20'000;
constexpr std::int64_t kMostTensorElements = std::int64_t{1} << 34;
constexpr int kMostTensorSides = 8;
constexpr std::size_t kLongestShownName = 80;
constexpr std::size_t kListedNodes = 6;

// Values of TensorProto.DataType.
enum OnnxType : std::int32_t {
  kOnnxFloat = 1,
  kOnnxInt32 = 6,
  kOnnxInt64 = 7,
  kOnnxBool = 9,
  kOnnxFloat16 = 10,
  kOnnxDouble = 11,
  kOnnxBfloat16 = 16,
};
constexpr std::int32_t kElsewhere = 1;  // TensorProto.DataLocation EXTERNAL

// Returns the name of the type in safetensors files; empty for a type that is not read.
std::string_view element_name(std::int32_t type) {
  switch (type) {
    case kOnnxFloat:
      return "F32";
    case kOnnxFloat16:
      return "F16";
    case kOnnxDouble:
      return "F64";
    case kOnnxBfloat16:
      return "BF16";
    case kOnnxInt32:
      return "I32";
    case kOnnxInt64:
      return "I64";
    case kOnnxBool:
      return "BOOL";
    default:
      return "";
  }
}

std::uint64_t parse_number(const std::string& text, std::uint64_t otherwise) {
  if (text.empty() || text.size() > 18 || text.find_first_not_of("0123456789") != text.npos) {
    return otherwise;
  }
  return std::stoull(text);
}

}  // namespace

std::string shown_name(const std::string& name) {
  std::string text = name.substr(0, kLongestShownName);
  for (char& letter : text) {
    if (letter < ' ' || letter > '~') letter = '?';
  }
  return name.size() > kLongestShownName ? text + "..." : text;
}

std::string node_name(const NodeProto& node) {
  if (!node.name().empty()) return shown_name(node.name());
  return node.output_size() > 0 ? shown_name(node.output(0)) : "without a name";
}

bool is_standard(const NodeProto& node) {
  return node.domain().empty() || node.domain() == "ai.onnx";
}

std::string operator_name(const NodeProto& node) {
  return is_standard(node) ? node.op_type() : node.domain() + "::" + node.op_type();
}

std::string listed_names(const std::vector<std::string>& names) {
  const std::size_t count = std::min(names.size(), kListedNodes);
  const std::string text = fmt::format("{}", fmt::join(names.begin(), names.begin() + count, ", "));
  if (count == names.size()) return text;
  return fmt::format("{} and {} more", text, names.size() - count);
}

OnnxFile::OnnxFile(std::filesystem::path path, std::istream& bytes) : path_(std::move(path)) {
  if (!model_.ParseFromIstream(&bytes)) {
    damaged("the bytes are no message of protobuf; the file is cut short, or no ONNX file");
  }
  if (!model_.has_graph()) damaged("the file has no graph; it is cut short, or no ONNX file");
  if (graph().node_size() > kMostOnnxNodes) {
    damaged(fmt::format("{} nodes; expected at most {}", graph().node_size(), kMostOnnxNodes));
  }
  check_opset();
}

std::string OnnxFile::metadata(std::string_view key) const {
  for (const auto& entry : model_.metadata_props()) {
    if (entry.key() == key) return entry.value();
  }
  return "";
}

void OnnxFile::check_opset() {
  for (const auto& entry : model_.opset_import()) {
    if (entry.domain().empty() || entry.domain() == "ai.onnx") opset_ = entry.version();
  }
  if (opset_ >= kOldestOpset && opset_ <= kNewestOpset) return;
  const std::string found =
      opset_ == 0 ? "the file names no opset" : fmt::format("opset {}", opset_);
  throw UsageError(fmt::format("{}: {}; expected opset {} to {}; export with opset_version=20",
                               path_.string(), found, kOldestOpset, kNewestOpset));
}

void OnnxFile::damaged(const std::string& why) const {
  throw FileError(path_.string() + ": " + why);
}

Shape OnnxFile::shape_of(const TensorProto& tensor) const {
  Shape shape(tensor.dims().begin(), tensor.dims().end());
  std::int64_t elements = 1;
  bool is_sound = tensor.dims_size() <= kMostTensorSides;
  for (const std::int64_t side : shape) {
    is_sound = is_sound && side >= 0 && !__builtin_mul_overflow(elements, side, &elements) &&
               elements <= kMostTensorElements;
  }
  if (!is_sound) {
    damaged(fmt::format(
        "tensor {} has the shape [{}]; expected at most {} sides and {} elements",
        shown_name(tensor.name()),
        fmt::join(shape.begin(), shape.begin() + std::min<std::ptrdiff_t>(tensor.dims_size(), 8),
                  ", "),
        kMostTensorSides, kMostTensorElements));
  }
  return shape;
}

bool OnnxFile::is_float_type(std::int32_t type) noexcept {
  return type == kOnnxFloat || type == kOnnxFloat16 || type == kOnnxDouble || type == kOnnxBfloat16;
}

bool OnnxFile::is_integer(const TensorProto& tensor) noexcept {
  const std::int32_t type = tensor.data_type();
  return type == kOnnxInt32 || type == kOnnxInt64 || type == kOnnxBool;
}

template <typename Stored, typename Values>
std::vector<Stored> OnnxFile::typed(const TensorProto& tensor, const Values& values) const {
  const auto expected = static_cast<std::uint64_t>(num_elements(shape_of(tensor)));
  if (static_cast<std::uint64_t>(values.size()) != expected) {
    damaged(fmt::format("tensor {} has {} elements; expected {}, as its shape says",
                        shown_name(tensor.name()), values.size(), expected));
  }
  std::vector<Stored> converted;
  converted.reserve(expected);
  for (const auto value : values) converted.push_back(static_cast<Stored>(value));
  return converted;
}

std::string OnnxFile::bytes_of(const TensorProto& tensor, std::uint64_t size) const {
  if (tensor.data_location() == kElsewhere) return external_bytes(tensor, size);
  if (tensor.raw_data().size() != size) {
    damaged(fmt::format("tensor {} has {} bytes; expected {}, as its shape says",
                        shown_name(tensor.name()), tensor.raw_data().size(), size));
  }
  return tensor.raw_data();
}

std::vector<std::filesystem::path> OnnxFile::other_files() const {
  std::vector<std::filesystem::path> files;
  for (const TensorProto& tensor : model_.graph().initializer()) {
    for (const auto& entry : tensor.external_data()) {
      if (entry.key() == "location") files.push_back(path_.parent_path() / entry.value());
    }
  }
  return files;
}

std::string OnnxFile::external_bytes(const TensorProto& tensor, std::uint64_t size) const {
  std::string location;
  std::uint64_t offset = 0;
  std::uint64_t length = size;
  for (const auto& entry : tensor.external_data()) {
    if (entry.key() == "location") location = entry.value();
    if (entry.key() == "offset") offset = parse_number(entry.value(), ~std::uint64_t{0});
    if (entry.key() == "length") length = parse_number(entry.value(), ~std::uint64_t{0});
  }
  const std::string name = shown_name(tensor.name());
  const std::filesystem::path inside = std::filesystem::path(location).lexically_normal();
  // A file from elsewhere must not name any file of this machine.
  if (location.empty() || inside.is_absolute() || *inside.begin() == "..") {
    damaged(fmt::format("tensor {} is in the file '{}'; expected a file in the folder of the model",
                        name, shown_name(location)));
  }
  if (length != size) {
    damaged(fmt::format("tensor {} has {} bytes in {}; expected {}, as its shape says", name,
                        length, shown_name(location), size));
  }
  const std::filesystem::path file = path_.parent_path() / inside;
  std::error_code error;
  const std::uintmax_t file_size = std::filesystem::file_size(file, error);
  if (error) {
    damaged(fmt::format("tensor {} is in {}, which is missing; put that file beside the model",
                        name, file.string()));
  }
  if (offset > file_size || size > file_size - offset) {
    damaged(fmt::format("tensor {} is at byte {} of {}, which has {} bytes; the file is cut short",
                        name, offset, file.string(), file_size));
  }
  std::string bytes(size, '\0');
  std::ifstream stream(file, std::ios::binary);
  stream.seekg(static_cast<std::streamoff>(offset));
  stream.read(bytes.data(), static_cast<std::streamsize>(size));
  if (!stream) throw FileError(describe_errno("read", file.string(), errno));
  return bytes;
}

std::vector<float> OnnxFile::read_floats(const TensorProto& tensor) const {
  const Shape shape = shape_of(tensor);
  const ElementType* type =
      is_float(tensor) ? find_element_type(element_name(tensor.data_type())) : nullptr;
  if (type == nullptr) {
    damaged(fmt::format("tensor {} is of type {}; expected float", shown_name(tensor.name()),
                        tensor.data_type()));
  }
  if (!tensor.float_data().empty() && tensor.data_type() == kOnnxFloat) {
    return typed<float>(tensor, tensor.float_data());
  }
  if (!tensor.double_data().empty() && tensor.data_type() == kOnnxDouble) {
    return typed<float>(tensor, tensor.double_data());
  }
  const auto elements = static_cast<std::size_t>(num_elements(shape));
  std::string bytes;
  if (!tensor.int32_data().empty() && type->bits == 16) {  // the bits of float16 and bfloat16
    const auto halves = typed<std::uint16_t>(tensor, tensor.int32_data());
    bytes.assign(reinterpret_cast<const char*>(halves.data()), halves.size() * 2);
  } else {
    bytes = bytes_of(tensor, elements * (type->bits / 8));
  }
  std::vector<float> values(elements);
  type->to_f32(std::as_bytes(std::span(bytes)), values);
  return values;
}

std::vector<std::int64_t> OnnxFile::read_integers(const TensorProto& tensor) const {
  const auto elements = static_cast<std::size_t>(num_elements(shape_of(tensor)));
  if (!is_integer(tensor)) {
    damaged(fmt::format("tensor {} is of type {}; expected integers", shown_name(tensor.name()),
                        tensor.data_type()));
  }
  if (!tensor.int64_data().empty()) return typed<std::int64_t>(tensor, tensor.int64_data());
  if (!tensor.int32_data().empty()) return typed<std::int64_t>(tensor, tensor.int32_data());
  const std::size_t width = find_element_type(element_name(tensor.data_type()))->bits / 8;
  const std::string bytes = bytes_of(tensor, elements * width);
  std::vector<std::int64_t> values(elements);
  for (std::size_t i = 0; i < elements; ++i) {
    std::int64_t wide = 0;
    std::int32_t narrow = 0;
    if (width == sizeof wide) std::memcpy(&wide, bytes.data() + i * width, width);
    if (width < sizeof wide) std::memcpy(&narrow, bytes.data() + i * width, width);
    values[i] = width == sizeof wide ? wide : narrow;
  }
  return values;
}

}  // namespace syncopate
