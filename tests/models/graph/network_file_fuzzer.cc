// The entry point for libFuzzer: reads any bytes as a network file. A network that is read must be
// the same after it is printed and read again. tests/README.md says how to run it.
#include <cstdlib>
#include <string_view>

#include "models/base/errors.h"
#include "models/graph/graph_text.h"

// libFuzzer prescribes the name and the types of this function.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);   // NOLINT
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {  // NOLINT
  using namespace syncopate;                                                         // NOLINT
  const NetworkInput input = {.sample_shape = {8, 8, 2}, .classes = 3, .input = {}, .head = {}};
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const Graph graph = parse_network_file(text, "net.json", input);
    const Graph again = parse_network_file(to_network_file(graph), "net.json", input);
    if (to_text(again) != to_text(graph)) std::abort();
  } catch (const UsageError&) {
  } catch (const ShapeError&) {
  }
  try {
    if (to_text(parse_graph(text)).empty()) std::abort();  // the text of a checkpoint
  } catch (const UsageError&) {
  } catch (const ShapeError&) {
  }
  return 0;
}
