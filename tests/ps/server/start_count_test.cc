// A number in a file, by nonce.
#include "ps/server/start_count.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

namespace syncopate::ps {
namespace {

class AStartCount : public ::testing::Test {
 protected:
  AStartCount() { std::filesystem::create_directories(dir_); }
  ~AStartCount() override { std::filesystem::remove_all(dir_); }

  const std::filesystem::path dir_ =
      ::testing::TempDir() + "start_count_test." + std::to_string(getpid());
};

TEST_F(AStartCount, AscendsWhateverTheNonceIsMadeOf) {
  for (const std::string nonce : {"job", "my job", " my  job ", "my\tjob", "7"}) {
    EXPECT_EQ(count_starts(dir_, nonce), 0) << nonce;
    EXPECT_EQ(count_starts(dir_, nonce), 1) << nonce;
    EXPECT_EQ(count_starts(dir_, nonce), 2) << nonce;
  }
}

TEST_F(AStartCount, BeginsAnewWithAnotherJobAndOnceTheJobIsOver) {
  EXPECT_EQ(count_starts(dir_, "my job"), 0);
  EXPECT_EQ(count_starts(dir_, "my other job"), 0);
  EXPECT_EQ(count_starts(dir_, "my"), 0) << "the beginning of another's";
  EXPECT_EQ(count_starts(dir_, "my"), 1);
  forget_starts(dir_);
  EXPECT_EQ(count_starts(dir_, "my"), 0);
}

TEST_F(AStartCount, BeginsAnewBehindAFileThatIsNoneOfOurs) {
  std::ofstream(dir_ / "server-0-starts") << "a job";
  EXPECT_EQ(count_starts(dir_, "job"), 0);
  EXPECT_EQ(count_starts(dir_, "job"), 1);
}

}  // namespace
}  // namespace syncopate::ps
