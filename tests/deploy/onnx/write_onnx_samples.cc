// Writes ONNX files into a folder: the fuzzer's initial corpus.
#include <string>

#include "tests/deploy/onnx/onnx_model.h"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  using namespace syncopate;  // NOLINT
  const std::string folder = argv[1];
  small_onnx_network().save(folder + "/small");
  OnnxModel keras({0, 4, 4, 2});
  set_list(keras.node("Transpose", "first", {"x"}), "perm", {0, 3, 1, 2});
  keras.weights("kernel", {2, 2, 3, 3});
  set(keras.node("Conv", "conv", {"first", "kernel"}), "auto_pad", std::string("SAME_UPPER"));
  keras.weights("up", {2, 2, 2, 2});
  set_list(keras.node("ConvTranspose", "wide", {"conv", "up"}), "strides", {2, 2});
  keras.node("Sigmoid", "gate", {"wide"});
  keras.node("Mul", "silu", {"wide", "gate"});
  set_list(keras.node("Transpose", "last", {"silu"}), "perm", {0, 2, 3, 1});
  keras.node("Shape", "sizes", {"last"});
  keras.list("zero", {0});
  keras.node("Gather", "samples", {"sizes", "zero"});
  keras.list("rest", {-1});
  set(keras.node("Concat", "target", {"samples", "rest"}), "axis", 0);
  keras.node("Reshape", "flat", {"last", "target"});
  keras.weights("matrix", {128, 3});
  keras.node("MatMul", "dense", {"flat", "matrix"});
  keras.weights("bias", {3});
  keras.node("Add", "logits", {"dense", "bias"});
  keras.last("Softmax", "softmax", {"logits"});
  keras.save(folder + "/keras");
  return 0;
}
