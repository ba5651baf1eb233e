// Files of weights in formats that this program does not read, recognised by name and first bytes.
#pragma once

#include <filesystem>

namespace syncopate {

// Throws UsageError with the line of Python that makes a safetensors file of `path`, if that is a
// file of PyTorch (.pth, .pt), of Keras (.keras, .h5) or of ONNX. Returns for all other files, also
// for one that does not exist.
void refuse_foreign_file(const std::filesystem::path& path);

}  // namespace syncopate
