// Weights for --init-from: a checkpoint of this program, the newest one of a folder, a safetensors
// file that another program wrote, or the index of several. Tensors have PyTorch's names, as in
// torchvision's and timm's resnet50; for resnet50-v1 Keras's names are accepted, too. Such files
// are written by
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

// Fills values and state of `snapshot`, which is on the host, from a file. The head is the dense
// layers at the end of the network. Its tensors keep their initial values, which follow from
// `seed`, when the file has none of their name and shape. All other tensors must be in the file;
// tensors that only the file has are not used. Names may have one prefix more than the network's
// (TensorNames). Returns one line for the user: what was loaded, what was left fresh and what was
// not used. Throws UsageError for the file of another network, for tensors that are missing or have
// another shape, and for a file of another format, with the line of Python that converts it;
// FileError for a file that is unreadable, cut short or damaged, or has values that are not finite.
std::string load_weights(const std::filesystem::path& path, const Graph& graph, std::uint64_t seed,
                         const Snapshot& snapshot);

// Returns size and checksum of a file as text, "unreadable" for a file that cannot be read. Tasks
// compare it to check that they read the same file.
std::string describe_file(const std::filesystem::path& path);

// Does the same for what load_weights() reads: one file, or an index and its shards.
std::string describe_weights(const std::filesystem::path& path);

}  // namespace syncopate
