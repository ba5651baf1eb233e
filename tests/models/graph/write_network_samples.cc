// Writes network files and a checkpoint's text into a folder: the fuzzer's initial corpus.
#include <fstream>
#include <string>

#include "models/graph/graph_text.h"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  using namespace syncopate;  // NOLINT
  GraphBuilder build("sample");
  NodeId x = build.input({8, 8, 2}, {});
  x = build.batch_norm(build.conv2d(x, "conv", 3, {.pad = 1, .bias = true}), "norm");
  x = build.shortcut(build.add(x, build.relu(x)), 2, 4);
  x = build.global_average_pool(build.max_pool(x));
  const Graph graph = build.finish(build.dense(build.flatten(x), "fc", 3));
  const std::string files[] = {to_network_file(graph), to_text(graph)};
  int number = 0;
  for (const std::string& file : files) {
    std::ofstream out(std::string(argv[1]) + "/file" + std::to_string(number++), std::ios::binary);
    out << file;
    if (!out) return 1;
  }
  return 0;
}
