// Recognises, by name and first bytes, files of weights in formats that this program does not read.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace syncopate {

// Throws UsageError if `path` is a file of PyTorch (.pth, .pt, or the index of .bin shards), of
// Keras (.keras, .h5) or of ONNX. The error has the line of Python that converts the file to
// safetensors, or other advice. Does nothing for all other files, including files that do not
// exist. network: the name of the network that the weights are for.
void refuse_foreign_file(const std::filesystem::path& path, std::string_view network);

// Returns `text` if it needs no escapes as TEXT in a shell line such as python3 -c "load('TEXT')";
// otherwise returns `other`.
std::string in_python_line(const std::string& text, const std::string& other);

}  // namespace syncopate
