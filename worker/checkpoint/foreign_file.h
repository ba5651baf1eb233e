// Files of weights in formats that this program does not read, recognised by name and first bytes.
#pragma once

#include <filesystem>
#include <string_view>

namespace syncopate {

// Throws UsageError with the line of Python that makes a safetensors file of `path`, or with what
// else to do, if that is a file of PyTorch (.pth, .pt; also the index of .bin shards), of Keras
// (.keras, .h5) or of ONNX. network: the name of the network that the weights are for. Returns for
// all other files, also for one that does not exist.
void refuse_foreign_file(const std::filesystem::path& path, std::string_view network);

}  // namespace syncopate
