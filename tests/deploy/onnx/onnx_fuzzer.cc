// The entry point for libFuzzer: reads any bytes as an ONNX file. A network that is read has a text
// and values for all its parameters. tests/README.md says how to run it.
#include <cstdlib>
#include <sstream>
#include <string>

#include "deploy/onnx/onnx_network.h"
#include "models/base/errors.h"
#include "models/graph/graph_text.h"

// libFuzzer prescribes the name and the types of this function.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);   // NOLINT
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {  // NOLINT
  using namespace syncopate;                                                         // NOLINT
  std::istringstream bytes(std::string(reinterpret_cast<const char*>(data), size));
  try {
    const OnnxNetwork network = read_onnx_network("/nowhere/net.onnx", bytes);
    if (to_network_file(network.graph).empty() || network.weights.empty()) std::abort();
  } catch (const UsageError&) {
  } catch (const FileError&) {
  }
  return 0;
}
