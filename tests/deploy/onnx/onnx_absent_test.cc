// A build without protobuf.
#include <gtest/gtest.h>

#include <functional>

#include "deploy/onnx/onnx_network.h"
#include "deploy/onnx/write_onnx_network.h"
#include "models/base/errors.h"

namespace syncopate {
namespace {

void expect_names_packages(const std::function<void()>& call) {
  try {
    call();
    FAIL() << "expected an error";
  } catch (const UnavailableError& error) {
    EXPECT_NE(std::string(error.what()).find("install libprotobuf-dev and protobuf-compiler"),
              std::string::npos);
  }
}

TEST(ABuildWithoutProtobuf, SaysWhatToInstallForOnnxFiles) {
  expect_names_packages([] { read_onnx_network("net.onnx"); });
  expect_names_packages([] { write_onnx_network({}, {}, {}, "net.onnx"); });
}

}  // namespace
}  // namespace syncopate
