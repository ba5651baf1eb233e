// Trains converted networks beside PyTorch, which exported them: onnx_peer.py does it. The Python
// with the packages torch, torchvision, onnx and onnxscript is named by the variable
// SYNCOPATE_PEER_PYTHON; without them the test is skipped.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/worker/temporary_folder.h"

namespace syncopate {
namespace {

TEST(AnExportedNetworkOfPyTorch, HasTheLossesOfPyTorchForTenStepsAfterItIsConverted) {
  const TemporaryFolder folder;
  const char* const python = std::getenv("SYNCOPATE_PEER_PYTHON");
  const std::string log = folder.path() / "log";
  const std::string command = std::string(python != nullptr ? python : "python3") +
                              " " SYNCOPATE_GOLDEN_DIR "/onnx_peer.py " SYNCOPATE_PROGRAM " " +
                              folder.path().string() + " tiny vgg11 >" + log + " 2>&1";
  const int status = std::system(command.c_str());
  std::ifstream stream(log);
  const std::string said{std::istreambuf_iterator<char>(stream), {}};
  constexpr int kAbsent = 77;
  constexpr int kNoPython = 127;
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  if (code == kAbsent || code == kNoPython) {
    GTEST_SKIP() << "SYNCOPATE_PEER_PYTHON names no Python with the packages: " << said;
  }
  EXPECT_EQ(code, 0) << said;
}

}  // namespace
}  // namespace syncopate
