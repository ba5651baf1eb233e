// Runs exported networks in onnxruntime: onnxruntime_peer.py does it. The Python with the packages
// onnxruntime and numpy is named by the variable SYNCOPATE_PEER_PYTHON; without them the test is
// skipped.
#include <gtest/gtest.h>

#include "tests/golden/python_peer.h"
#include "tests/support/temporary_folder.h"

namespace syncopate {
namespace {

TEST(AnExportedOnnxNetwork, HasTheScoresOfPredictInOnnxruntime) {
  const TemporaryFolder folder;
  const PythonPeer peer = run_python_peer(
      "onnxruntime_peer.py",
      SYNCOPATE_PROGRAM " " + folder.path().string() + " mnist-cnn resnet20 mobilenet-v2 fcn rare",
      folder.path() / "log");
  if (peer.is_absent) {
    GTEST_SKIP() << "SYNCOPATE_PEER_PYTHON names no Python with the packages: " << peer.output;
  }
  EXPECT_EQ(peer.exit_code, 0) << peer.output;
}

}  // namespace
}  // namespace syncopate
