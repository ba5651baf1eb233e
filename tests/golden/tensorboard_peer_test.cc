// Reads event files with TensorBoard: tensorboard_peer.py does it. The Python with the package
// tensorboard is named by the variable SYNCOPATE_PEER_PYTHON; without it the test is skipped.
#include <gtest/gtest.h>

#include "tests/golden/python_peer.h"
#include "tests/support/temporary_folder.h"

namespace syncopate {
namespace {

TEST(TensorBoardsOwnReader, ReadsEachStepOfACurveOnce) {
  const TemporaryFolder folder;
  const PythonPeer peer = run_python_peer(
      "tensorboard_peer.py", SYNCOPATE_PROGRAM " " + folder.path().string(), folder.path() / "log");
  if (peer.is_absent) {
    GTEST_SKIP() << "SYNCOPATE_PEER_PYTHON names no Python with the package: " << peer.output;
  }
  EXPECT_EQ(peer.exit_code, 0) << peer.output;
}

}  // namespace
}  // namespace syncopate
