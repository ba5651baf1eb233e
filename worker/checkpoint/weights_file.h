// Reads weights for --init-from from a checkpoint of this program, from the newest checkpoint of a
// folder, from a safetensors file that another program wrote, or from the index of several
// safetensors files. Tensors have PyTorch's names, as in the resnet50 of torchvision and timm; for
// resnet50-v1 Keras's names are accepted, too. Files of other programs can be written by
//   safetensors.torch.save_file(torchvision.models.resnet50(weights="DEFAULT").state_dict(), FILE)
//   safetensors.numpy.save_file({w.path: keras.ops.convert_to_numpy(w)
//                                for w in keras.applications.ResNet50().weights}, FILE)
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "models/graph/graph.h"
#include "strategies/strategy.h"

namespace syncopate {

// Fills values and state of `snapshot`, which is on the host, from a file. The head consists of the
// dense layers at the end of the network. A tensor of the head gets its initial value, which
// follows from `seed`, if the file has no tensor with its name and shape. All other tensors must be
// in the file; tensors that only the file has are not used. Names in the file may have a prefix,
// see TensorNames. Returns one line for the user: what was loaded, what got initial values and what
// was not used. Throws UsageError for a file of another network, and for tensors that are missing
// or have another shape. For a file of another format, throws UsageError with the line of Python
// that converts the file. Throws FileError for a file that is unreadable, cut short or damaged, or
// has values that are not finite.
std::string load_weights(const std::filesystem::path& path, const Graph& graph, std::uint64_t seed,
                         const Snapshot& snapshot);

// Returns size and checksum of a file as text; "unreadable" for a file that cannot be read. Tasks
// compare the text to check that they read the same file.
std::string describe_file(const std::filesystem::path& path);

// Like describe_file(), but for everything that load_weights() reads: one file, or an index and its
// shards.
std::string describe_weights(const std::filesystem::path& path);

}  // namespace syncopate
