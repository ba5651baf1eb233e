// Runs the lines of Python that --init-from prints for files of PyTorch and Keras: weights_peer.py
// does it. The Python with the packages is named by the variable SYNCOPATE_PEER_PYTHON; without
// them the tests are skipped.
#include <gtest/gtest.h>

#include "tests/golden/python_peer.h"
#include "tests/support/temporary_folder.h"

namespace syncopate {
namespace {

class LinesThatInitFromPrints : public testing::TestWithParam<std::string> {};

TEST_P(LinesThatInitFromPrints, MakeFilesWithTheSameWeights) {
  const TemporaryFolder folder;
  const PythonPeer peer = run_python_peer(
      "weights_peer.py", GetParam() + " " SYNCOPATE_PROGRAM " " + folder.path().string(),
      folder.path() / "log");
  if (peer.is_absent) {
    GTEST_SKIP() << "SYNCOPATE_PEER_PYTHON names no Python with the packages: " << peer.output;
  }
  EXPECT_EQ(peer.exit_code, 0) << peer.output;
}

INSTANTIATE_TEST_SUITE_P(EachProgram, LinesThatInitFromPrints, testing::Values("torch", "keras"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace syncopate
