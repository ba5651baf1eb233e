// Reads files that TensorFlow wrote, and has TensorFlow read ours. tensorflow_peer.py runs in the
// Python that the variable SYNCOPATE_PEER_PYTHON names; without TensorFlow the tests are skipped.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "tests/worker/input/read_sample.h"
#include "tests/worker/input/record/record_folders.h"

namespace syncopate {
namespace {

class TensorFlowPeer : public testing::Test {
 protected:
  // Runs the script with these words; skips the test without TensorFlow. Fills output_.
  void run(const std::string& words) {
    const char* const python = std::getenv("SYNCOPATE_PEER_PYTHON");
    const std::string log = (folder_.path() / "log").string();
    const std::string command = std::string(python != nullptr ? python : "python3") +
                                " " SYNCOPATE_RECORD_TESTS "/tensorflow_peer.py " + words + " >" +
                                log + " 2>" + log + ".errors";
    const int status = std::system(command.c_str());
    std::ifstream stream(log);
    output_ = {std::istreambuf_iterator<char>(stream), {}};
    constexpr int kAbsent = 77;
    constexpr int kNoPython = 127;
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    if (code == kAbsent || code == kNoPython) {
      GTEST_SKIP() << "SYNCOPATE_PEER_PYTHON names no Python with tensorflow: " << output_;
    }
    ASSERT_EQ(code, 0) << output_;
  }
  DataSplits open(const std::string& flag, const std::string& raw_shape = "") const {
    return open_dataset(flag, {.image = {.fields = {.raw_shape = raw_shape}}});
  }

  TemporaryFolder folder_;
  std::string output_;
};

TEST_F(TensorFlowPeer, ReadsOurRecords) {
  const std::filesystem::path path = folder_.path() / "ours.tfrecord";
  RecordWriter writer(path);
  for (const int n : {1, 2, 3}) {
    const Bytes record = labelled_record(Bytes(static_cast<std::size_t>(n), 100), 10 * n);
    writer.write(std::as_bytes(std::span(record)));
  }
  writer.commit();
  run("read " + path.string());
  if (IsSkipped()) return;
  EXPECT_EQ(output_, "100 10\n200 20\n300 30\n");
}

TEST_F(TensorFlowPeer, WritesRecordsThatWeRead) {
  run("write " + folder_.path().string());
  if (IsSkipped()) return;
  for (const std::string name : {"plain", "packed"}) {
    const std::string path = (folder_.path() / (name + ".tfrecord")).string();
    const DataSplits data = open("tfrecord:" + path + "::" + path, "2:u8");
    ASSERT_EQ(data.train->size(), 20);
    Bytes values(2);
    for (int i = 0; i < 20; ++i) {
      EXPECT_EQ(read_sample(*data.train, i, values), i % 3);
      EXPECT_EQ(values, (Bytes{static_cast<std::uint8_t>(i), static_cast<std::uint8_t>(2 * i)}));
    }
  }
  const DataSplits patches = open("otbtf:" + (folder_.path() / "otbtf").string());
  ASSERT_EQ(patches.train->size(), 3);
  std::array<std::uint16_t, 16> patch{};
  std::array<std::int32_t, 4> map{};
  const std::array inputs = {std::span<std::byte>(std::as_writable_bytes(std::span(patch)))};
  patches.train->read(2, {}, {inputs, std::as_writable_bytes(std::span(map))});
  EXPECT_EQ(patch[15], 2015);
  EXPECT_EQ(map, (std::array<std::int32_t, 4>{2, 2, 2, 2}));
}

}  // namespace
}  // namespace syncopate
