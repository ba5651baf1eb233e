// A build without protobuf.
#include <gtest/gtest.h>

#include "deploy/onnx/onnx_network.h"
#include "models/base/errors.h"

namespace syncopate {
namespace {

TEST(ABuildWithoutProtobuf, SaysWhatToInstallToConvertOnnxFiles) {
  try {
    read_onnx_network("net.onnx");
    FAIL() << "expected an error";
  } catch (const UnavailableError& error) {
    EXPECT_NE(std::string(error.what()).find("install libprotobuf-dev and protobuf-compiler"),
              std::string::npos);
  }
}

}  // namespace
}  // namespace syncopate
