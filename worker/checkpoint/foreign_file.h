// Files of weights in formats that this program does not read, recognised by name and first bytes.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace syncopate {

// Throws UsageError with the line of Python that makes a safetensors file of `path`, or with what
// else to do, if that is a file of PyTorch (.pth, .pt; also the index of .bin shards), of Keras
// (.keras, .h5) or of ONNX. network: the name of the network that the weights are for. Returns for
// all other files, also for one that does not exist.
void refuse_foreign_file(const std::filesystem::path& path, std::string_view network);

// Returns `text` if it can stand in a printed line such as python3 -c "load('TEXT')", within the
// quotes of Python and of the shell; else `other`.
std::string in_python_line(const std::string& text, const std::string& other);

}  // namespace syncopate
