#include "worker/checkpoint/foreign_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <string>
#include <string_view>

#include "models/base/errors.h"

namespace syncopate {
namespace {

enum class ForeignFormat { kNone, kTorch, kNumpy, kKeras, kKerasHdf5, kOnnx };

constexpr std::string_view kHdf5 = "\x89HDF\r\n\x1a\n";
constexpr std::string_view kZip = "PK\x03\x04";  // torch.save since PyTorch 1.6, .keras and .npz

// Whether these are a pickle's first bytes, of protocol 2 to 5: torch.save before PyTorch 1.6.
bool is_pickle(std::string_view bytes) {
  return bytes.size() > 1 && bytes[0] == '\x80' && bytes[1] >= 2 && bytes[1] <= 5;
}

ForeignFormat format_of(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  std::array<char, 8> first{};
  stream.read(first.data(), first.size());
  const std::string_view bytes(first.data(), static_cast<std::size_t>(stream.gcount()));
  const std::string suffix = path.extension().string();
  if (bytes.starts_with(kHdf5)) return ForeignFormat::kKerasHdf5;
  if (bytes.starts_with(kZip)) {
    if (suffix == ".npz") return ForeignFormat::kNumpy;
    return suffix == ".keras" ? ForeignFormat::kKeras : ForeignFormat::kTorch;
  }
  // A pickle's first bytes could be a header's length, too, but of 512 bytes at a time.
  constexpr std::array kTorchSuffixes = {".pth", ".pt", ".pkl", ".tar", ".bin"};
  const bool named_torch = std::ranges::find(kTorchSuffixes, suffix) != kTorchSuffixes.end();
  if (named_torch && is_pickle(bytes)) return ForeignFormat::kTorch;
  if (suffix == ".onnx" && !bytes.empty()) return ForeignFormat::kOnnx;
  return ForeignFormat::kNone;
}

}  // namespace

void refuse_foreign_file(const std::filesystem::path& path) {
  std::error_code ignored;
  const auto type = std::filesystem::status(path, ignored).type();
  if (type == std::filesystem::file_type::fifo || type == std::filesystem::file_type::character) {
    throw UsageError(
        fmt::format("--init-from {}: a pipe or a device; expected a file", path.string()));
  }
  const ForeignFormat format = format_of(path);
  if (format == ForeignFormat::kNone) return;
  // The line quotes both paths, for Python and for the shell.
  const bool is_quotable = path.string().find_first_of("'\"\\$`") == std::string::npos;
  const std::string from = is_quotable ? path.string() : "FILE";
  const std::string to =
      is_quotable ? std::filesystem::path(path).replace_extension(".safetensors").string()
                  : "FILE.safetensors";
  const auto refuse = [&](std::string_view what, const std::string& python) {
    throw UsageError(fmt::format(
        "--init-from {} is a file of {}; expected safetensors; convert it, in an environment with "
        "{} and safetensors: python3 -c \"{}\"",
        path.string(), what, what.substr(0, what.find(' ')), python));
  };
  const auto keras_line = [&](const std::string& model) {
    return fmt::format(
        "import keras, safetensors.numpy as s; s.save_file({{w.path: "
        "keras.ops.convert_to_numpy(w) for w in {}.weights}}, '{}')",
        model, to);
  };
  if (format == ForeignFormat::kTorch) {
    // A training loop's file has the weights under a name, beside the optimizer's.
    refuse("PyTorch",
           fmt::format("import torch, safetensors.torch as s; d = torch.load('{}', "
                       "map_location='cpu'); d = getattr(d, 'state_dict', lambda: d)(); d = "
                       "next((d[k] for k in ('state_dict', 'model_state_dict', 'model') if k in "
                       "d), d); s.save_file({{k.removeprefix('module.'): v.contiguous() for k, v "
                       "in d.items()}}, '{}')",
                       from, to));
  }
  if (format == ForeignFormat::kNumpy) {
    refuse("NumPy", fmt::format("import numpy, safetensors.numpy as s; "
                                "s.save_file(dict(numpy.load('{}')), '{}')",
                                from, to));
  }
  if (format == ForeignFormat::kKeras) {
    refuse("Keras", keras_line(fmt::format("keras.models.load_model('{}')", from)));
  }
  if (format == ForeignFormat::kKerasHdf5) {
    refuse("Keras (HDF5)",
           keras_line(fmt::format("keras.applications.ResNet50(weights='{}')", from)));
  }
  throw UsageError(fmt::format(
      "--init-from {} is a file of ONNX, which may have batch norms folded away; expected "
      "safetensors; give the state_dict of the PyTorch model: python3 -c \"import "
      "safetensors.torch as s; s.save_file(MODEL.state_dict(), '{}')\", or syncopate convert {} "
      "NET.json WEIGHTS.safetensors for the network and its weights",
      path.string(), to, path.string()));
}

}  // namespace syncopate
