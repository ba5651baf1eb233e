// Compares five steps of each optimizer with the results of PyTorch, which make_golden.py computes.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <ostream>
#include <string>
#include <vector>

#include "models/optim/optimizer.h"

namespace syncopate {
namespace {

using Values = std::array<float, 4>;

struct GoldenRun {
  std::string name;
  double weight_decay = 0.0;
  Values values{};
  std::vector<Values> slots;
};

// GoogleTest calls this function, whose name it prescribes; without it GoogleTest prints the bytes
// of the object.
// NOLINTNEXTLINE(readability-identifier-naming)
std::ostream& operator<<(std::ostream& out, const GoldenRun& run) { return out << run.name; }

const std::vector<GoldenRun>& golden_runs() {
  static const std::vector<GoldenRun> kRuns = {
#include "tests/models/optim/golden_values.inc"
  };
  return kRuns;
}

// The relative tolerance is 1e-6: both sides round to f32 after every operation, but PyTorch
// computes the constants in another order.
void expect_close(const Values& found, const Values& golden, const char* what) {
  for (std::size_t i = 0; i < golden.size(); ++i) {
    EXPECT_NEAR(found.at(i), golden.at(i), 1e-6 * std::max(1e-3F, std::abs(golden.at(i))))
        << what << " " << i;
  }
}

class OptimizerGolden : public testing::TestWithParam<GoldenRun> {};

TEST_P(OptimizerGolden, MatchesPyTorch) {
  const GoldenRun& golden = GetParam();
  OptimizerOptions options = {.name = golden.name, .weight_decay = golden.weight_decay};
  if (golden.name == "nesterov") {
    options.name = "momentum";
    options.nesterov = true;
  }
  const auto optimizer = make_optimizer(options);
  Values values = {1.0F, -2.0F, 0.5F, 0.001F};
  std::vector<Values> slots(optimizer->slot_names().size());
  const std::vector<std::span<float>> slot_spans(slots.begin(), slots.end());
  for (std::int64_t step = 1; step <= 5; ++step) {
    const float factor = static_cast<float>(step) * (step % 2 == 1 ? 1.0F : -1.0F);
    const Values gradients = {0.1F * factor, -0.2F * factor, 3.0F * factor, 1e-4F * factor};
    optimizer->update({.learning_rate = 0.1F, .step = step}, values, gradients, slot_spans, true);
  }
  expect_close(values, golden.values, "value");
  ASSERT_EQ(slots.size(), golden.slots.size());
  for (std::size_t i = 0; i < slots.size(); ++i) expect_close(slots[i], golden.slots[i], "slot");
}

INSTANTIATE_TEST_SUITE_P(, OptimizerGolden, testing::ValuesIn(golden_runs()),
                         [](const testing::TestParamInfo<GoldenRun>& run) {
                           return run.param.name +
                                  (run.param.weight_decay > 0.0 ? "WithDecay" : "");
                         });

}  // namespace
}  // namespace syncopate
