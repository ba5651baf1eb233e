// Tests `syncopate convert` of an ONNX file through the command line: the files that it writes
// train under strategies, and wrong files and words end with one line.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/deploy/onnx/onnx_model.h"
#include "tests/end_to_end/support/metrics_lines.h"
#include "tests/end_to_end/support/run_program.h"
#include "tests/end_to_end/support/training_runs.h"
#include "tests/support/as_words.h"
#include "tests/support/contains.h"
#include "tests/support/temporary_folder.h"

namespace syncopate::test {
namespace {

class ConvertOfAnOnnxFile : public testing::Test {
 protected:
  void SetUp() override { small_onnx_network().save(model_); }

  ProgramResult convert() const { return run_syncopate({"convert", model_, net_, weights_}); }

  TemporaryFolder scratch_;
  const std::string model_ = scratch_ / "model.onnx";
  const std::string net_ = scratch_ / "net.json";
  const std::string weights_ = scratch_ / "net.safetensors";
};

TEST_F(ConvertOfAnOnnxFile, WritesANetworkAndWeightsThatTrainUnderEverySynchronousStrategy) {
  const ProgramResult converted = successful(convert());
  EXPECT_TRUE(contains(converted.out,
                       "wrote network model with input [N, 3, 8, 8] as N, C, H, W, 8 nodes and 441 "
                       "parameters to "));
  int runs = 0;
  expect_same_bits_under_synchronous_strategies(
      [&](const Arguments& where, const Arguments& what) {
        const std::string metrics = scratch_ / ("m" + std::to_string(++runs));
        const ProgramResult run = successful(run_syncopate(
            where + what + Arguments{"--threads", "1", "--no-progress", "--metrics", metrics}));
        EXPECT_TRUE(contains((run.out + run.err), "net.safetensors: 7 tensors")) << run.err;
        return summary_of(metrics).at("weights_hash").get<std::string>();
      },
      as_words("--model", "file:" + net_, "--init-from", weights_,
               "--data synthetic:3x8x8:5:64 --batch-size 16 --steps 2"));
}

TEST_F(ConvertOfAnOnnxFile, LeavesNoFilesOfAWrongOne) {
  std::filesystem::resize_file(model_, 500);
  expect_failure(convert(), 1, {"the file is cut short, or no ONNX file"});
  EXPECT_FALSE(std::filesystem::exists(net_));
  EXPECT_FALSE(std::filesystem::exists(weights_));
}

// The network file is not written, so the message names the ONNX file.
TEST_F(ConvertOfAnOnnxFile, NamesTheOnnxFileWhereItsNetworkIsRefused) {
  OnnxModel model = small_onnx_network();
  model.node("Relu", "unread", {"fc"});
  model.node("Shape", "shape", {"unread"});
  model.node("Reshape", "end", {"fc", "shape"});
  model.message.mutable_graph()->mutable_output(0)->set_name("end");
  model.save(model_);
  const ProgramResult result = convert();
  EXPECT_EQ(result.exit_code, 2) << result.err;
  EXPECT_TRUE(contains(result.err,
                       "model.onnx: it becomes a network that is refused: node 7 (relu): no "
                       "later node reads it"));
}

TEST_F(ConvertOfAnOnnxFile, EndsWithOneLineForWrongWords) {
  const auto expect_refused = [&](const Arguments& words, const std::string& line) {
    expect_failure(run_syncopate(Arguments{"convert"} + words), 2, {line});
  };
  expect_refused({model_, net_}, "expected three files: convert model.onnx net.json");
  expect_refused({model_, net_, net_}, "two files; found one name");
  expect_refused({model_, net_, scratch_ / "./net.json"}, "two files; found one name");
  expect_refused({model_, model_, weights_}, "is the ONNX file itself");
  expect_refused({model_, scratch_ / "no/net.json", weights_}, "there is no folder ");
  expect_refused({scratch_ / "none.onnx", net_, weights_}, "there is no such file");
  expect_refused({scratch_ / ".", net_, weights_},
                 "this is no regular file; expected an ONNX file");
  expect_refused({"--to", "tfrecord", "digits", net_, weights_}, "found a third word");
}

}  // namespace
}  // namespace syncopate::test
