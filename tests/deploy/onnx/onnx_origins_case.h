// What tests of the origins of tensors share: files as both exporters of PyTorch and tf2onnx write
// them.
#pragma once

#include <string>
#include <vector>

#include "tests/deploy/onnx/onnx_network_case.h"
#include "tests/support/as_words.h"
#include "tests/support/contains.h"

namespace syncopate {

class AnOnnxTensor : public AnOnnxNetwork {
 protected:
  static OnnxModel model_of(const std::string& producer, const std::vector<std::int64_t>& input) {
    OnnxModel model(input);
    model.message.set_producer_name(producer);
    return model;
  }
  // The newer exporter of PyTorch lists what is trained and what is not.
  static void list(OnnxModel& model, const Arguments& parameters, const Arguments& buffers = {}) {
    std::string text = "\n# inputs\n";
    for (const auto& name : parameters) text += listed("p_", name, "PARAMETER");
    for (const auto& name : buffers) text += listed("b_", name, "BUFFER");
    set_metadata(*model.message.mutable_graph(), "pkg.torch.export.ExportedProgram.graph_signature",
                 text + "x: USER_INPUT\n");
  }
  static std::string listed(std::string prefix, const std::string& name, const char* kind) {
    for (const char letter : name) prefix += letter == '.' ? '_' : letter;
    return prefix + ": " + kind + " target='" + name + "'\n";
  }
  static NodeProto& made_by(NodeProto& node, const std::string& target,
                            const std::string& arguments) {
    set_metadata(node, "pkg.torch.onnx.fx_node",
                 "%y : [num_users=1] = call_function[target=torch.ops.aten." + target +
                     "](args = (" + arguments + "), kwargs = {})");
    return node;
  }
  // A dense layer of 4 features, and one of 3 behind the nodes of a test.
  static OnnxModel hidden(const std::string& producer) {
    OnnxModel model = model_of(producer, {0, 4});
    model.weights("fc.weight", {4, 4});
    model.weights("fc.bias", {4});
    set(model.node("Gemm", "hidden", {"x", "fc.weight", "fc.bias"}), "transB", 1);
    model.weights("head.weight", {3, 4});
    model.weights("head.bias", {3});
    return model;
  }
  static void end(OnnxModel& model, const std::string& x, const std::string& weight) {
    set(model.last("Gemm", "head", {x, weight, "head.bias"}), "transB", 1);
  }
  void expect_refusal(const OnnxModel& model, const std::string& text) const {
    const std::string error = error_of(model);
    EXPECT_TRUE(contains(error, text)) << text << ": " << error;
    EXPECT_EQ(error.find('\n'), std::string::npos);
  }
};

}  // namespace syncopate
