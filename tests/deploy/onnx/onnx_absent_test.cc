// A build without protobuf.
#include <gtest/gtest.h>

#include <functional>

#include "deploy/onnx/onnx_network.h"
#include "deploy/onnx/write_onnx_network.h"
#include "models/base/errors.h"
#include "tests/support/contains.h"
#include "tests/support/thrown.h"

namespace syncopate {
namespace {

void expect_names_packages(const std::function<void()>& call) {
  EXPECT_TRUE(contains(message_of<UnavailableError>([&] { call(); }),
                       "install libprotobuf-dev and protobuf-compiler"));
}

TEST(ABuildWithoutProtobuf, SaysWhatToInstallForOnnxFiles) {
  expect_names_packages([] { read_onnx_network("net.onnx"); });
  expect_names_packages([] { write_onnx_network({}, {}, {}, "net.onnx"); });
}

}  // namespace
}  // namespace syncopate
