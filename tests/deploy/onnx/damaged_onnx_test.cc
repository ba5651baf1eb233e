// Wrong ONNX files: each gets one line that says what is wrong, and no memory for sizes that only
// the file claims.
#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <limits>

#include "deploy/onnx/onnx_network.h"
#include "models/base/errors.h"
#include "tests/deploy/onnx/onnx_model.h"
#include "tests/support/contains.h"
#include "tests/support/temporary_folder.h"

namespace syncopate {
namespace {

struct WrongFile {
  std::string name;
  std::string line;  // a part of the message
  std::function<void(OnnxModel&)> change;
  std::function<std::string(std::string)> change_bytes = [](std::string bytes) { return bytes; };
};

void PrintTo(const WrongFile& file, std::ostream* out) { *out << file.name; }

proto::onnx::GraphProto& graph_of(OnnxModel& model) { return *model.message.mutable_graph(); }

void set_input_side(OnnxModel& model, int index, std::int64_t side) {
  auto& type = *graph_of(model).mutable_input(0)->mutable_type()->mutable_tensor_type();
  type.mutable_shape()->mutable_dim(index)->set_dim_value(side);
}

void put_elsewhere(OnnxModel& model, const std::string& location, const std::string& offset) {
  TensorProto& bias = *graph_of(model).mutable_initializer()->rbegin();
  bias.clear_float_data();
  bias.set_data_location(1);
  bias.add_external_data()->set_key("location");
  bias.mutable_external_data(0)->set_value(location);
  bias.add_external_data()->set_key("offset");
  bias.mutable_external_data(1)->set_value(offset);
}

const WrongFile kWrongFiles[] = {
    {"Empty", "the file is empty", [](OnnxModel&) {}, [](std::string) { return ""; }},
    {"NoProtobuf", "no message of protobuf", [](OnnxModel&) {},
     [](std::string) { return "<!DOCTYPE html><html>"; }},
    {"CutShort", "cut short", [](OnnxModel&) {},
     [](const std::string& bytes) { return bytes.substr(0, bytes.size() / 2); }},
    {"WithoutAGraph", "has no graph", [](OnnxModel& model) { model.message.clear_graph(); }},
    {"WithoutAnOpset", "names no opset",
     [](OnnxModel& model) { model.message.clear_opset_import(); }},
    {"WithoutAnInput", "0 inputs; expected one",
     [](OnnxModel& model) { graph_of(model).clear_input(); }},
    {"WithTwoInputs", "2 inputs, x, mask; expected one",
     [](OnnxModel& model) { graph_of(model).add_input()->set_name("mask"); }},
    {"WithAnOpenHeight", "input x is [N, 3, height, 8]",
     [](OnnxModel& model) {
       auto& type = *graph_of(model).mutable_input(0)->mutable_type()->mutable_tensor_type();
       type.mutable_shape()->mutable_dim(2)->set_dim_param("height");
     }},
    {"WithAnInputOfIntegers", "of type 7",
     [](OnnxModel& model) {
       graph_of(model).mutable_input(0)->mutable_type()->mutable_tensor_type()->set_elem_type(7);
     }},
    {"WithAHugeInput", "input x is [N, 3, 1000000000000, 8]",
     [](OnnxModel& model) { set_input_side(model, 2, 1'000'000'000'000); }},
    {"WithTwoOutputs", "2 outputs, fc, pool", [](OnnxModel& model) { model.output("pool"); }},
    {"WithAnUnknownOutput", "the output nothing is not computed",
     [](OnnxModel& model) { graph_of(model).mutable_output(0)->set_name("nothing"); }},
    {"WithAnUnknownOperator", "LSTM in node relu",
     [](OnnxModel& model) { graph_of(model).mutable_node(2)->set_op_type("LSTM"); }},
    {"WithAnUnknownAttribute", "Relu in node relu with the attribute slope",
     [](OnnxModel& model) { set(*graph_of(model).mutable_node(2), "slope", 0.1F); }},
    {"WithAnAttributeOfAnotherType", "attribute strides is of type 2; expected 7",
     [](OnnxModel& model) { set(*graph_of(model).mutable_node(0), "strides", 2); }},
    {"WithAHugeStride", "strides 1000000000000; expected 1 to 128",
     [](OnnxModel& model) {
       set_list(*graph_of(model).mutable_node(0), "strides",
                {1'000'000'000'000, 1'000'000'000'000});
     }},
    {"WithACycle", "reads what it writes",
     [](OnnxModel& model) { graph_of(model).mutable_node(0)->set_input(0, "pool"); }},
    {"WithAValueThatNoNodeWrites", "reads the value y, which no node writes",
     [](OnnxModel& model) { graph_of(model).mutable_node(0)->set_input(0, "y"); }},
    {"WithTwoWritersOfAValue", "two nodes write the value relu",
     [](OnnxModel& model) { graph_of(model).mutable_node(3)->set_output(0, "relu"); }},
    {"WithANodeWithoutInputs", "has 0 inputs",
     [](OnnxModel& model) { graph_of(model).mutable_node(5)->clear_input(); }},
    {"WithAWeightOfAnotherShape", "with conv1.weight [4, 2, 3, 3]; expected [4, 3, 3, 3]",
     [](OnnxModel& model) { graph_of(model).mutable_initializer(0)->set_dims(1, 2); }},
    {"WithFewerElementsThanItsShape", "has 5 elements; expected 6",
     [](OnnxModel& model) {
       graph_of(model).mutable_initializer()->rbegin()->set_dims(0, 6);
       graph_of(model).mutable_initializer(5)->set_dims(0, 6);
     }},
    {"With10To18Elements", "at most 8 sides and 17179869184 elements",
     [](OnnxModel& model) {
       graph_of(model).mutable_initializer(0)->set_dims(0, 1'000'000'000);
       graph_of(model).mutable_initializer(0)->set_dims(1, 1'000'000'000);
     }},
    {"With10To10ElementsAndNoBytes", "has 0 bytes; expected 40000000000",
     [](OnnxModel& model) {
       TensorProto& weight = *graph_of(model).mutable_initializer(0);
       weight.clear_float_data();
       weight.clear_dims();
       for (const std::int64_t side : {1'000'000, 100, 100, 1}) weight.add_dims(side);
       graph_of(model).mutable_node(0)->clear_attribute();
       set_input_side(model, 1, 100);
       set_input_side(model, 2, 200);
     }},
    {"WithANegativeSide", "has the shape [-4, 3, 3, 3]",
     [](OnnxModel& model) { graph_of(model).mutable_initializer(0)->set_dims(0, -4); }},
    {"WithWeightsOfTextType", "Gemm in node fc whose input 2 is not of floats",
     [](OnnxModel& model) { graph_of(model).mutable_initializer()->rbegin()->set_data_type(8); }},
    {"WithoutItsExternalFile", "which is missing; put that file beside the model",
     [](OnnxModel& model) { put_elsewhere(model, "net.data", "0"); }},
    {"WithAnExternalFileOfTheMachine", "expected a file in the folder of the model",
     [](OnnxModel& model) { put_elsewhere(model, "../../etc/passwd", "0"); }},
    {"WithAnExternalOffsetBehindTheFile", "the file is cut short",
     [](OnnxModel& model) { put_elsewhere(model, "net.onnx", "99999999"); }},
    {"WithValuesThatAreNotFinite",
     "the values of fc.bias are not finite: its training diverged, or the export failed",
     [](OnnxModel& model) {
       graph_of(model).mutable_initializer()->rbegin()->set_float_data(
           0, std::numeric_limits<float>::infinity());
     }},
    {"WithTwoTensorsOfOneName", "two tensors have the name fc.bias; expected one of each name",
     [](OnnxModel& model) { model.weights("fc.bias", {3}); }},
    {"WithSharedWeights",
     "Gemm in node again with the tensor square of first, too; layers that share a weight",
     [](OnnxModel& model) {
       model.weights("square", {5, 5});
       model.node("Gemm", "first", {"fc", "square"});
       model.node("Gemm", "again", {"first", "square"});
       graph_of(model).mutable_output(0)->set_name("again");
     }}};

class AWrongOnnxFile : public testing::TestWithParam<WrongFile> {};

TEST_P(AWrongOnnxFile, IsRefusedWithOneLine) {
  const TemporaryFolder folder;
  OnnxModel model = small_onnx_network();
  GetParam().change(model);
  const std::filesystem::path path = folder.path() / "net.onnx";
  std::ofstream(path, std::ios::binary) << GetParam().change_bytes(model.bytes());
  std::string line;
  try {
    read_onnx_network(path);
  } catch (const UsageError& error) {
    line = error.what();
  } catch (const FileError& error) {
    line = error.what();
  }
  EXPECT_TRUE(contains(line, GetParam().line));
  EXPECT_TRUE(line.starts_with(path.string())) << line;
  EXPECT_EQ(line.find('\n'), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(All, AWrongOnnxFile, testing::ValuesIn(kWrongFiles),
                         [](const auto& instance) { return instance.param.name; });

}  // namespace
}  // namespace syncopate
