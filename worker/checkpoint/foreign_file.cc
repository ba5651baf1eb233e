#include "worker/checkpoint/foreign_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

#include "models/base/errors.h"
#include "worker/checkpoint/stored_weights.h"
#include "worker/checkpoint/tensor_names.h"

namespace syncopate {
namespace {

namespace fs = std::filesystem;

enum class ForeignFormat {
  kNone,
  kTorch,
  kPickle,
  kTorchShards,
  kNumpy,
  kKeras,
  kHdf5,
  kOnnx,
  kLfs
};

constexpr std::string_view kHdf5 = "\x89HDF\r\n\x1a\n";
constexpr std::string_view kZip = "PK\x03\x04";  // torch.save since PyTorch 1.6, .keras and .npz
constexpr std::string_view kLfsPointer = "version ";

// The first object of a file of torch.save before PyTorch 1.6: a pickle of the number
// 0x1950a86a20f9469cfc6c, of 10 bytes. Source: torch/serialization.py, MAGIC_NUMBER.
constexpr std::string_view kTorchPickle = "\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19";

// Reads a file of torch.save, of any kind. Every class except tensor and array classes is replaced
// by a dictionary that takes any state. So no code of the file runs, and a whole module, or an
// object of a class that is not installed, becomes dictionaries as well. All tensors and arrays get
// the names of the dictionaries, and the numbers in the lists, that they are in; TensorNames finds
// the network among them. clone() parts tensors that share their memory, which safetensors refuses.
// NumPy's functions stand here, because their modules have other names in NumPy 1; old pickles make
// bytes by calls. $STATE becomes what is read, $FROM and $TO the files.
constexpr std::string_view kReadTorch =
    "import pickle as p, sys, torch, safetensors.torch as s; B = p.Unpickler; C = type('C', "
    "(dict,), {'append': lambda o, v: o.update({len(o): v}), 'extend': lambda o, v: "
    "o.update(enumerate(v, len(o))), '__init__': lambda o, *a, **k: o.update(enumerate(a)), "
    "'__setstate__': lambda o, d: o.update(d if isinstance(d, dict) else {}), '__hash__': "
    "object.__hash__}); K = {('_codecs', 'encode'): str.encode, **dict.fromkeys((('builtins', "
    "'bytes'), ('__builtin__', 'bytes')), lambda *a: b'')}; N = lambda n: (lambda m: {'ndarray': "
    "m.ndarray, 'dtype': m.dtype, '_reconstruct': lambda t, *a: m.ndarray(*a), '_frombuffer': "
    "lambda b, t, n, o: m.frombuffer(b, t).reshape(n, order=o)}.get(n, C))(__import__('numpy')); "
    "U = type('U', (B,), {'find_class': lambda u, m, n: K[m, n] if (m, n) in K else N(n) if "
    "m[:5] == 'numpy' else B.find_class(u, m, n) if m[:5] == 'torch' and (n[:10] in "
    "('_rebuild_t', '_rebuild_p', '_rebuild_f') or n in ('Tensor', 'Parameter', 'Buffer')) else "
    "C}); p.Unpickler, p.load = U, lambda f, **k: U(f, **k).load(); F = lambda d, q='', w=(): {} "
    "if id(d) in w else {a: b for k, v in (d.items() if isinstance(d, dict) else enumerate(d)) "
    "for a, b in F(v, q if k in ('_parameters', '_buffers', '_modules') else f'{q}{k}.', (*w, "
    "id(d))).items()} if isinstance(d, (dict, list, tuple)) else {q[:-1]: "
    "d.detach().clone().contiguous()} if torch.is_tensor(d) else {q[:-1]: "
    "torch.from_numpy(d.astype(d.dtype.newbyteorder('='))).contiguous()} if getattr(getattr(d, "
    "'dtype', 0), 'char', '-') in 'efdbhilqB' else {}; L = lambda x: (lambda d: F(getattr(d, "
    "'state_dict', lambda: d)()))(torch.load(x, map_location='cpu', weights_only=False)); T = "
    "$STATE; T or sys.exit('$FROM has no tensor; save the state_dict of the network'); "
    "s.save_file(T, '$TO')";

std::string replaced(std::string text, std::string_view word, std::string_view by) {
  return text.replace(text.find(word), word.size(), by);
}

// Whether these are a pickle's first bytes, of protocol 2 to 5.
bool is_pickle(std::string_view bytes) {
  return bytes.size() > 1 && bytes[0] == '\x80' && bytes[1] >= 2 && bytes[1] <= 5;
}

std::string first_bytes(const fs::path& path, std::size_t count) {
  std::ifstream stream(path, std::ios::binary);
  std::string bytes(count, '\0');
  stream.read(bytes.data(), static_cast<std::streamsize>(count));
  bytes.resize(static_cast<std::size_t>(stream.gcount()));
  return bytes;
}

bool is_index_of_torch(const fs::path& path) {
  if (!path.string().ends_with(".index.json")) return false;
  const std::vector<fs::path> shards = shards_of(path);
  return std::ranges::any_of(
      shards, [](const fs::path& shard) { return shard.extension() != ".safetensors"; });
}

ForeignFormat format_of(const fs::path& path) {
  const std::string bytes = first_bytes(path, 2 + kTorchPickle.size());
  const std::string suffix = path.extension().string();
  if (bytes.starts_with(kHdf5)) return ForeignFormat::kHdf5;
  if (bytes.starts_with(kZip)) {
    if (suffix == ".npz") return ForeignFormat::kNumpy;
    return suffix == ".keras" ? ForeignFormat::kKeras : ForeignFormat::kTorch;
  }
  if (is_pickle(bytes) && bytes.substr(2) == kTorchPickle) return ForeignFormat::kTorch;
  // A pickle's first bytes could be a header's length, too, but of 512 bytes at a time.
  constexpr std::array kPickleSuffixes = {".pth", ".pt",  ".pkl", ".pickle",
                                          ".tar", ".bin", ".ckpt"};
  const bool is_named = std::ranges::find(kPickleSuffixes, suffix) != kPickleSuffixes.end();
  if (is_named && is_pickle(bytes)) return ForeignFormat::kPickle;
  if (bytes.starts_with(kLfsPointer)) return ForeignFormat::kLfs;
  if (suffix == ".onnx" && !bytes.empty()) return ForeignFormat::kOnnx;
  return is_index_of_torch(path) ? ForeignFormat::kTorchShards : ForeignFormat::kNone;
}

// Whether an HDF5 file has a whole model of Keras: the attribute is among the file's first bytes,
// because Keras writes it first. Source: keras/src/legacy/saving/legacy_h5_format.py.
bool has_model(const fs::path& path) {
  constexpr std::size_t kBeforeWeights = std::size_t{1} << 20;
  return first_bytes(path, kBeforeWeights).find("model_config") != std::string::npos;
}

// Returns how to take a network and its weights from Keras. load: the Python that loads the model;
// "": the file has weights only, which need the program that made them.
std::string keras_advice(const std::string& load, const std::string& from, const std::string& to) {
  const auto lines = [&](std::string_view model) {
    // Keras exports no model that was not called.
    return fmt::format("{0}({0}.inputs); {0}.export('{1}', format='onnx')", model, to);
  };
  return fmt::format(
      "expected safetensors with the network's own names; take the network with its weights, with "
      "Keras and tf2onnx{}, then type syncopate convert {} NET.json WEIGHTS.safetensors, which "
      "prints how to train it",
      load.empty() ? fmt::format(", in the program that makes MODEL: MODEL.load_weights('{}'); {}",
                                 from, lines("MODEL"))
                   : fmt::format(": python3 -c \"import keras; m = {}; {}\"", load, lines("m")),
      to);
}

}  // namespace

std::string in_python_line(const std::string& text, const std::string& other) {
  return text.find_first_of("'\"\\$`!") == std::string::npos ? text : other;
}

void refuse_foreign_file(const fs::path& path, std::string_view network) {
  std::error_code ignored;
  const auto type = fs::status(path, ignored).type();
  if (type == fs::file_type::fifo || type == fs::file_type::character) {
    throw UsageError(
        fmt::format("--init-from {}: a pipe or a device; expected a file", path.string()));
  }
  const ForeignFormat format = format_of(path);
  if (format == ForeignFormat::kNone) return;
  const std::string from = in_python_line(path.string(), "FILE");
  fs::path other = from;
  if (other.extension() == ".json") other.replace_extension().replace_extension();
  other.replace_extension(other.extension() == ".safetensors" ? ".converted.safetensors"
                                                              : ".safetensors");
  const std::string to = other.string();
  const auto refuse = [&](std::string_view what, const std::string& python) {
    throw UsageError(fmt::format(
        "--init-from {} is a file of {}; expected safetensors; convert it, in an environment with "
        "{} and safetensors: python3 -c \"{}\"",
        path.string(), what, what.substr(0, what.find_first_of(" ,")), python));
  };
  const auto keras_line = [&](const std::string& model) {
    return fmt::format(
        "import keras, safetensors.numpy as s; s.save_file({{w.path: "
        "keras.ops.convert_to_numpy(w) for w in {}.weights}}, '{}')",
        model, to);
  };
  if (format == ForeignFormat::kLfs) {
    throw UsageError(fmt::format(
        "--init-from {} is a pointer of Git LFS, not the file itself; fetch it with git lfs pull",
        path.string()));
  }
  if (format == ForeignFormat::kPickle) {
    throw UsageError(fmt::format(
        "--init-from {} is a pickle that torch.save did not write; expected safetensors; in the "
        "program that made it: safetensors.torch.save_file(STATE_DICT, '{}')",
        path.string(), to));
  }
  const auto refuse_torch = [&](std::string_view what, const std::string& state) {
    const std::string line = replaced(std::string(kReadTorch), "$STATE", state);
    refuse(what, replaced(replaced(line, "$FROM", from), "$TO", to));
  };
  if (format == ForeignFormat::kTorch) refuse_torch("PyTorch", fmt::format("L('{}')", from));
  if (format == ForeignFormat::kTorchShards) {
    const std::string folder = from.substr(0, from.find_last_of('/') + 1);
    refuse_torch("PyTorch, the index of shards",
                 fmt::format("{{a: b for x in set(__import__('json').load(open('{0}'))"
                             "['weight_map'].values()) for a, b in "
                             "L('{1}' + x).items()}}",
                             from, folder));
  }
  if (format == ForeignFormat::kNumpy) {
    refuse("NumPy", fmt::format("import numpy, safetensors.numpy as s; "
                                "s.save_file(dict(numpy.load('{}')), '{}')",
                                from, to));
  }
  if (format == ForeignFormat::kKeras || format == ForeignFormat::kHdf5) {
    const bool is_whole = format == ForeignFormat::kKeras || has_model(path);
    const std::string load =
        is_whole ? fmt::format("keras.models.load_model('{}', compile=False)", from) : "";
    if (!has_keras_names(network)) {
      throw UsageError(
          fmt::format("--init-from {} is a file of Keras; {}", path.string(),
                      keras_advice(load, from, fs::path(to).replace_extension(".onnx").string())));
    }
    const bool has_top = path.filename().string().find("notop") == std::string::npos;
    refuse("Keras", keras_line(is_whole ? load
                                        : fmt::format("keras.applications.ResNet50(weights='{}'{})",
                                                      from, has_top ? "" : ", include_top=False")));
  }
  throw UsageError(fmt::format(
      "--init-from {} is a file of ONNX, which may have batch norms folded away; expected "
      "safetensors; give the state_dict of the PyTorch model: python3 -c \"import "
      "safetensors.torch as s; s.save_file(MODEL.state_dict(), '{}')\", or syncopate convert {} "
      "NET.json WEIGHTS.safetensors for the network and its weights",
      path.string(), to, path.string()));
}

}  // namespace syncopate
