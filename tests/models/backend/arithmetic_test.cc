// Compares the CPU backend with the interpreter for every small network: with and without fused
// groups and Winograd, with one to three lanes, for full, short and empty batches.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "tests/models/backend/backend_case.h"
#include "tests/models/backend/small_networks.h"

namespace syncopate {
namespace {

constexpr std::int64_t kLargestBatch = 8;
constexpr std::int64_t kLossDivisor = 13;  // larger than a batch, as with several replicas

class BackendArithmetic : public testing::TestWithParam<SmallNetwork> {
 protected:
  const Graph& graph() const { return GetParam().graph; }

  // Computes each result of the interpreter once, because the interpreter is slow.
  const reference::Result& expected(std::int64_t batch, Mode mode) {
    const auto key = std::make_pair(batch, mode);
    const auto found = results_.find(key);
    if (found != results_.end()) return found->second;
    return results_[key] =
               reference::run(graph(), variables_, reference::first_samples(samples_, batch),
                              static_cast<double>(kLossDivisor), mode);
  }

  void expect_right(BackendCase& subject, std::int64_t batch, const CaseOptions& options) {
    SCOPED_TRACE(to_string(options) + ", " + std::to_string(batch) + " samples");
    subject.set_state(variables_);
    const Scores scores =
        subject.step(make_batch(graph(), reference::first_samples(samples_, batch), kLossDivisor));
    expect_equal(expected(batch, options.mode), subject, scores, graph(), tolerance(options));
  }

  reference::Variables variables_ = reference::random_variables(graph(), 21);
  reference::Samples samples_ = reference::random_samples(graph(), kLargestBatch, 22);

 private:
  std::map<std::pair<std::int64_t, Mode>, reference::Result> results_;
};

TEST_P(BackendArithmetic, AgreesWithTheInterpreterForBatchesUpToTheCompiledSize) {
  for (const int lanes : {1, 2, 3}) {
    for (const bool fuse : {true, false}) {
      for (const bool winograd : {false, true}) {
        const CaseOptions options{
            .lanes = lanes, .batch_size = kLargestBatch, .fuse = fuse, .winograd = winograd};
        BackendCase subject(graph(), variables_, options);
        // A short batch follows a long batch, so values left over from the long batch would show.
        for (const std::int64_t batch : {8, 5, 2, 1, 0, 8}) expect_right(subject, batch, options);
      }
    }
  }
}

TEST_P(BackendArithmetic, AgreesWithTheInterpreterWhenCompiledForFewSamples) {
  for (const int lanes : {1, 2, 3}) {
    for (const std::int64_t batch : {1, 2, 5}) {
      const CaseOptions options{.lanes = lanes, .batch_size = batch, .winograd = false};
      BackendCase subject(graph(), variables_, options);
      expect_right(subject, batch, options);
    }
  }
}

TEST_P(BackendArithmetic, AgreesWithTheInterpreterInEvaluationAndKeepsTheState) {
  for (const int lanes : {1, 2, 3}) {
    for (const bool fuse : {true, false}) {
      for (const bool winograd : {false, true}) {
        const CaseOptions options{
            .lanes = lanes, .fuse = fuse, .winograd = winograd, .mode = Mode::kEvaluate};
        BackendCase subject(graph(), variables_, options);
        for (const std::int64_t batch : {8, 5, 1, 0}) expect_right(subject, batch, options);
        for (std::size_t s = 0; s < variables_.state.size(); ++s) {
          EXPECT_TRUE(std::ranges::equal(subject.state.value(s).f32(), variables_.state[s]))
              << graph().state[s].name << " changed, " << to_string(options);
        }
      }
    }
  }
}

TEST_P(BackendArithmetic, AgreesWithTheInterpreterOnOlderInstructionSets) {
  for (const Isa isa : {Isa::kV2, Isa::kV3}) {
    if (isa >= detect_isa()) continue;  // the tests above use the highest set of instructions
    for (const Mode mode : {Mode::kTrain, Mode::kEvaluate}) {
      const CaseOptions options{.lanes = 2, .isa = isa, .mode = mode};
      BackendCase subject(graph(), variables_, options);
      for (const std::int64_t batch : {8, 5}) expect_right(subject, batch, options);
    }
  }
}

std::string test_name(const testing::TestParamInfo<SmallNetwork>& network) {
  return network.param.name;
}

INSTANTIATE_TEST_SUITE_P(Small, BackendArithmetic, testing::ValuesIn(small_networks()), test_name);

}  // namespace
}  // namespace syncopate
