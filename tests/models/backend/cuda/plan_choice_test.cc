// Tests the choice of an engine, with engines that are only names and a clock that is only a table
// of times.
#include "models/backend/cuda/plan_choice.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <latch>
#include <map>
#include <thread>

#include "tests/support/temporary_folder.h"

namespace syncopate::cuda {
namespace {

using std::chrono::microseconds;
using std::chrono::nanoseconds;

class FakeEngines final : public EngineSource {
 public:
  explicit FakeEngines(std::vector<std::string> offered) : offered_(std::move(offered)) {}

  std::vector<std::string> candidates() override {
    ++asked;
    return offered_;
  }
  bool prepare(const std::string& engine) override {
    return std::ranges::find(offered_, engine) != offered_.end() || also_offered == engine;
  }
  std::optional<nanoseconds> time(const std::string& engine, nanoseconds give_up_after) override {
    ++timed;
    limits.push_back(give_up_after);
    const auto found = times.find(engine);
    if (found == times.end()) return std::nullopt;
    return found->second;
  }

  std::map<std::string, nanoseconds> times;
  std::string also_offered;  // an engine that is offered without being a candidate
  int asked = 0;
  int timed = 0;
  std::vector<nanoseconds> limits;  // after which each timed run could be given up

 private:
  std::vector<std::string> offered_;
};

class AnEngine : public testing::Test {
 protected:
  std::filesystem::path file() const { return folder_ / "cuda_plans"; }

  const TemporaryFolder folder_;
};

TEST_F(AnEngine, IsTheLibrarysFirstAndNeverTimedWithoutACache) {
  FakeEngines engines({"1", "2"});
  engines.times = {{"1", nanoseconds(9)}, {"2", nanoseconds(5)}};
  EXPECT_EQ(choose_engine(engines, nullptr, "key"), "1");
  EXPECT_EQ(engines.timed, 0);
}

TEST_F(AnEngine, IsTheFastestOneAndOfEqualsTheFirst) {
  FakeEngines engines({"1", "2", "3"});
  engines.times = {{"1", nanoseconds(9)}, {"2", nanoseconds(5)}, {"3", nanoseconds(5)}};
  PlanCache cache(file());
  EXPECT_EQ(choose_engine(engines, &cache, "key"), "2");
}

TEST_F(AnEngine, IsTimedOnceForAllRuns) {
  FakeEngines first({"1", "2"});
  first.times = {{"1", nanoseconds(9)}, {"2", nanoseconds(5)}};
  PlanCache cache(file());
  choose_engine(first, &cache, "key");
  FakeEngines second({"1", "2"});
  second.times = {{"1", nanoseconds(1)}, {"2", nanoseconds(5)}};
  PlanCache next(file());
  EXPECT_EQ(choose_engine(second, &next, "key"), "2");
  EXPECT_EQ(second.timed, 0);
  EXPECT_EQ(second.asked, 0) << "only the one that is kept is made ready";
  EXPECT_EQ(choose_engine(second, &next, "of another operation"), "1");
}

TEST_F(AnEngine, ThatCannotBeTimedIsLeftOut) {
  FakeEngines engines({"1", "2"});
  engines.times = {{"2", nanoseconds(5)}};
  PlanCache cache(file());
  EXPECT_EQ(choose_engine(engines, &cache, "key"), "2");
}

TEST_F(AnEngine, IsTheLibrarysFirstAndNotKeptWhereNoneCanBeTimed) {
  FakeEngines engines({"1", "2"});
  PlanCache cache(file());
  EXPECT_EQ(choose_engine(engines, &cache, "key"), "1");
  EXPECT_EQ(cache.find("key"), std::nullopt);
}

TEST_F(AnEngine, ThatIsKeptAndNoLongerOfferedIsReplaced) {
  PlanCache(file()).get_or_store("key", "0");
  FakeEngines engines({"1", "2"});
  engines.times = {{"1", nanoseconds(9)}, {"2", nanoseconds(5)}};
  PlanCache cache(file());
  EXPECT_EQ(choose_engine(engines, &cache, "key"), "2");
  EXPECT_EQ(PlanCache(file()).find("key"), "2");
}

TEST_F(AnEngine, IsTheOneThatAnotherProcessStoredFirst) {
  FakeEngines engines({"1", "2"});
  engines.times = {{"1", nanoseconds(9)}, {"2", nanoseconds(5)}};
  engines.also_offered = "3";
  PlanCache cache(file());
  PlanCache(file()).get_or_store("key", "3");
  EXPECT_EQ(choose_engine(engines, &cache, "key"), "3");
}

// Two measurements at the same time on one device would both be wrong.
TEST_F(AnEngine, IsMeasuredByOneProcessAfterTheOther) {
  std::array<FakeEngines, 2> engines = {FakeEngines({"1", "2"}), FakeEngines({"1", "2"})};
  std::array<std::string, 2> chosen;
  {
    std::latch both_have_read(2);  // an empty file, before either measures
    std::vector<std::jthread> processes;
    for (std::size_t i = 0; i < engines.size(); ++i) {
      engines.at(i).times = {{"1", nanoseconds(9)}, {"2", nanoseconds(5)}};
      processes.emplace_back([&, i] {
        PlanCache cache(file(), "gpu");
        both_have_read.arrive_and_wait();
        chosen.at(i) = choose_engine(engines.at(i), &cache, "key");
      });
    }
  }
  EXPECT_EQ(chosen.at(0), "2");
  EXPECT_EQ(chosen.at(1), "2");
  EXPECT_EQ(engines.at(0).timed + engines.at(1).timed, 2) << "the second one reads what is kept";
}

TEST_F(AnEngine, MayBeTimedRoughlyIfItIsClearlySlowerThanTheFastestSoFar) {
  FakeEngines engines({"1", "2", "3"});
  engines.times = {{"1", microseconds(800)}, {"2", microseconds(200)}, {"3", microseconds(900)}};
  PlanCache cache(file());
  EXPECT_EQ(choose_engine(engines, &cache, "key"), "2");
  ASSERT_EQ(engines.limits.size(), 3);
  EXPECT_GT(engines.limits[0], std::chrono::seconds(1)) << "nothing is known about the first";
  EXPECT_EQ(engines.limits[1], microseconds(1200));
  EXPECT_EQ(engines.limits[2], microseconds(400)) << "the host may be slow to start one";
}

TEST_F(AnEngine, IsAbsentIfTheLibraryOffersNone) {
  FakeEngines engines({});
  PlanCache cache(file());
  EXPECT_EQ(choose_engine(engines, &cache, "key"), "");
}

}  // namespace
}  // namespace syncopate::cuda
