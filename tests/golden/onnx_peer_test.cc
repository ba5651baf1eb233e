// Trains converted networks beside PyTorch and Keras, which exported them: onnx_peer.py and
// keras_peer.py do it. The Python with the packages torch, torchvision, onnx and onnxscript, or
// keras, tensorflow and tf2onnx, is named by the variable SYNCOPATE_PEER_PYTHON; without them a
// test is skipped.
#include <gtest/gtest.h>

#include <string>

#include "tests/golden/python_peer.h"
#include "tests/support/temporary_folder.h"

namespace syncopate {
namespace {

void expect_losses(const char* script, const char* networks) {
  const TemporaryFolder folder;
  const PythonPeer peer = run_python_peer(
      script, SYNCOPATE_PROGRAM " " + folder.path().string() + networks, folder.path() / "log");
  if (peer.is_absent) {
    GTEST_SKIP() << "SYNCOPATE_PEER_PYTHON names no Python with the packages: " << peer.output;
  }
  EXPECT_EQ(peer.exit_code, 0) << peer.output;
}

TEST(AnExportedNetworkOfPyTorch, HasTheLossesOfPyTorchForTenStepsAfterItIsConverted) {
  expect_losses("onnx_peer.py", " tiny enlarged attention vgg11");
}

TEST(AnExportedNetworkOfKeras, HasTheLossesOfKerasForTenStepsAfterItIsConverted) {
  expect_losses("keras_peer.py", " unet squeeze");
}

}  // namespace
}  // namespace syncopate
