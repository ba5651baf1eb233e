// Takes the place of the reader of ONNX files in a build without protobuf.
#include "deploy/onnx/onnx_network.h"
#include "models/base/errors.h"

namespace syncopate {

OnnxNetwork read_onnx_network(const std::filesystem::path& /*path*/) {
  throw UnavailableError(
      "convert needs protobuf to read ONNX files, and this build has none; install "
      "libprotobuf-dev and protobuf-compiler, and build again");
}

}  // namespace syncopate
