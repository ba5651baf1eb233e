// Tests the cache file of the cuDNN engines that were measured as fastest.
#include "models/backend/cuda/plan_cache.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <sstream>
#include <thread>
#include <vector>

#include "tests/support/contains.h"
#include "tests/support/temporary_folder.h"

namespace syncopate::cuda {
namespace {

class APlanCache : public testing::Test {
 protected:
  std::string text() const {
    std::ostringstream text;
    text << std::ifstream(file_).rdbuf();
    return text.str();
  }
  void write(const std::string& text) const {
    std::filesystem::create_directories(file_.parent_path());
    std::ofstream(file_) << text;
  }

  const TemporaryFolder folder_;
  const std::filesystem::path file_ = folder_ / "below" / "cuda_plans";
};

TEST_F(APlanCache, IsEmptyWithoutAFileAndWritesNoneUntilSomethingIsKept) {
  const PlanCache cache(file_);
  EXPECT_EQ(cache.find("a convolution"), std::nullopt);
  EXPECT_FALSE(std::filesystem::exists(file_));
}

TEST_F(APlanCache, KeepsItsChoicesForTheNextRun) {
  PlanCache cache(file_);
  EXPECT_EQ(cache.get_or_store("a convolution", "42 2=5"), "42 2=5");
  EXPECT_EQ(cache.get_or_store("another one", "7"), "7");
  const PlanCache next(file_);
  EXPECT_EQ(next.find("a convolution"), "42 2=5");
  EXPECT_EQ(next.find("another one"), "7");
}

TEST_F(APlanCache, LetsTheFirstOfSeveralDecide) {
  PlanCache one(file_);
  PlanCache other(file_);
  EXPECT_EQ(one.get_or_store("a convolution", "42"), "42");
  EXPECT_EQ(other.get_or_store("a convolution", "7"), "42");
  EXPECT_EQ(other.find("a convolution"), "42");
}

TEST_F(APlanCache, ReplacesAnEngineThatCannotBeUsed) {
  PlanCache cache(file_);
  cache.get_or_store("a convolution", "42");
  EXPECT_EQ(cache.get_or_store("a convolution", "7", "42"), "7");
  EXPECT_EQ(PlanCache(file_).find("a convolution"), "7");
}

TEST_F(APlanCache, LosesNoEntryWhenManyProcessesWriteAtOnce) {
  constexpr int kWriters = 4;
  constexpr int kKeys = 10;
  std::vector<std::vector<std::string>> stored(kWriters);
  {
    std::vector<std::jthread> writers;
    for (int w = 0; w < kWriters; ++w) {
      writers.emplace_back([&, w] {
        PlanCache cache(file_);
        for (int k = 0; k < kKeys; ++k) {
          stored[static_cast<std::size_t>(w)].push_back(
              cache.get_or_store("shared " + std::to_string(k), std::to_string(w)));
          cache.get_or_store("of " + std::to_string(w) + " " + std::to_string(k), "1");
        }
      });
    }
  }
  const PlanCache all(file_);
  for (int k = 0; k < kKeys; ++k) {
    for (int w = 0; w < kWriters; ++w) {
      EXPECT_EQ(all.find("of " + std::to_string(w) + " " + std::to_string(k)), "1");
      EXPECT_EQ(all.find("shared " + std::to_string(k)),
                stored[static_cast<std::size_t>(w)][static_cast<std::size_t>(k)]);
    }
  }
}

TEST_F(APlanCache, IgnoresADamagedFileWithOneWarningAndRewritesIt) {
  PlanCache(file_).get_or_store("a convolution", "42");
  const std::string whole = text();
  for (const std::string& damaged :
       {std::string(), std::string("syncopate plans 2\nend 0\n"), whole.substr(0, whole.size() - 1),
        whole.substr(0, whole.size() / 2), whole + "more", std::string("\0\xff\x7f", 3),
        std::string("syncopate plans 1\nno tab\nend 1\n")}) {
    SCOPED_TRACE(damaged);
    write(damaged);
    testing::internal::CaptureStderr();
    PlanCache cache(file_);
    EXPECT_EQ(cache.find("a convolution"), std::nullopt);
    EXPECT_EQ(cache.get_or_store("a convolution", "7"), "7");
    const std::string log = testing::internal::GetCapturedStderr();
    EXPECT_TRUE(contains(log, "measured again"));
    EXPECT_EQ(log.find("measured again"), log.rfind("measured again")) << log;
    EXPECT_EQ(PlanCache(file_).find("a convolution"), "7");
  }
}

TEST_F(APlanCache, ContinuesWithOneWarningIfItsFileCannotBeWritten) {
  write("");
  std::filesystem::remove(file_);
  std::filesystem::create_directories(file_);  // no file can be written there
  testing::internal::CaptureStderr();
  PlanCache cache(file_);
  EXPECT_EQ(cache.get_or_store("a convolution", "42"), "42");
  EXPECT_EQ(cache.get_or_store("another one", "7"), "7");
  EXPECT_EQ(cache.find("a convolution"), "42");
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(contains(log, "--cache-dir"));
  EXPECT_EQ(log.find("--cache-dir"), log.rfind("--cache-dir")) << log;
}

}  // namespace
}  // namespace syncopate::cuda
