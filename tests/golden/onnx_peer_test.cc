// Trains converted networks beside PyTorch, which exported them: onnx_peer.py does it. The Python
// with the packages torch, torchvision, onnx and onnxscript is named by the variable
// SYNCOPATE_PEER_PYTHON; without them the test is skipped.
#include <gtest/gtest.h>

#include <string>

#include "tests/golden/python_peer.h"
#include "tests/worker/temporary_folder.h"

namespace syncopate {
namespace {

TEST(AnExportedNetworkOfPyTorch, HasTheLossesOfPyTorchForTenStepsAfterItIsConverted) {
  const TemporaryFolder folder;
  const PythonPeer peer = run_python_peer(
      "onnx_peer.py", SYNCOPATE_PROGRAM " " + folder.path().string() + " tiny vgg11",
      folder.path() / "log");
  if (peer.is_absent) {
    GTEST_SKIP() << "SYNCOPATE_PEER_PYTHON names no Python with the packages: " << peer.output;
  }
  EXPECT_EQ(peer.exit_code, 0) << peer.output;
}

}  // namespace
}  // namespace syncopate
