// Writes network files and a checkpoint's text into a folder: the fuzzer's initial corpus.
#include <array>
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
  x = build.multiply(build.upsample2d(x), build.reduce_mean(build.softmax(x), std::array{0, 1}));
  x = build.matmul(build.transpose(x, {0, 2, 1}), build.clip(build.linear(x, 0.5F), -1.0F, 1.0F));
  x = build.reshape(build.activation(x, Activation::kHardSigmoid), {4, 4, 8});
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
