// Takes the place of the code that reads and writes ONNX files in a build without protobuf.
#include "deploy/onnx/onnx_network.h"
#include "deploy/onnx/write_onnx_network.h"
#include "models/base/errors.h"

namespace syncopate {

OnnxNetwork read_onnx_network(const std::filesystem::path& /*path*/) {
  throw UnavailableError(
      "convert needs protobuf to read ONNX files, and this build has none; install "
      "libprotobuf-dev and protobuf-compiler, and build again");
}

void write_onnx_network(const Graph& /*graph*/, const ReadTensor& /*read*/,
                        const std::map<std::string, std::string>& /*metadata*/,
                        const std::filesystem::path& /*path*/) {
  throw UnavailableError(
      "export --onnx needs protobuf, and this build has none; install libprotobuf-dev and "
      "protobuf-compiler, and build again, or export the weights alone");
}

}  // namespace syncopate
