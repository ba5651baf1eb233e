// Tests that variants with the same batch make the same updates: their runs are trained again with
// the flags that the comparison gave them, and their weights are compared.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/bench/compare/compare_program.h"
#include "tests/end_to_end/support/checkpoint_values.h"
#include "tests/end_to_end/support/run_program.h"
#include "tests/support/as_words.h"

namespace syncopate::test {
namespace {

class SameBatch : public Compare {
 protected:
  // Returns the weights that a variant of the comparison has after this number of updates.
  // learning_rate: replaces the rate of the comparison.
  std::vector<float> weights(const std::string& run, const Words& launch, int updates,
                             const std::string& learning_rate) {
    std::ifstream in(dir_ / "runs" / (run + ".jsonl"));
    std::string head;
    std::getline(in, head);
    Words flags = nlohmann::json::parse(head).at("flags");
    const auto after = [&](const char* flag) { return std::ranges::find(flags, flag) + 1; };
    *after("--learning-rate") = learning_rate;
    *after("--steps") = std::to_string(updates);
    const fs::path folder = scratch_ / ("weights" + std::to_string(++trained_));
    successful(run_syncopate(launch + Words{"train"} + flags +
                             as_words("--checkpoint-dir", folder.string())));
    return newest_checkpoint_values(folder);
  }

 private:
  int trained_ = 0;
};

std::vector<float> difference(const std::vector<float>& a, const std::vector<float>& b) {
  std::vector<float> values(a.size());
  std::ranges::transform(a, b, values.begin(), [](float x, float y) { return x - y; });
  return values;
}

// The design sets these limits for N replicas with B / N samples and one with B.
TEST_F(SameBatch, MakesTheSameUpdatesWithOneWorkerAndWithThree) {
  successful(run(
      as_words("--data synthetic:1x8x8:4:512 --workers 3 --same batch --batch-size 96 --strategies "
               "one-device,multi-worker-mirrored --budget updates --updates 10 -- --optimizer sgd "
               "--learning-rate 0.5")));
  const std::string one = "one-device-seed1";
  const std::string several = "multi-worker-mirrored-seed1";
  const Words launch = as_words("launch --workers 3 --");
  const std::vector<float> first = weights(one, {}, 1, "1e-30");
  const std::vector<float> one_step = difference(weights(one, {}, 1, "0.5"), first);
  const std::vector<float> three_step = difference(weights(several, launch, 1, "0.5"), first);
  EXPECT_LT(relative_distance(three_step, one_step), 1e-5);
  const std::vector<float> after_ten = weights(one, {}, 10, "0.5");
  EXPECT_LT(relative_distance(weights(several, launch, 10, "0.5"), after_ten), 1e-3);
  EXPECT_GT(relative_distance(after_ten, first), 0.1) << "the weights have changed";
}

}  // namespace
}  // namespace syncopate::test
