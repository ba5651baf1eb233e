// Precision and recall of each class, as train prints and writes them for the network and patches
// of OTBTF's guide, beside those that the label maps of `syncopate predict` give.
#include <gtest/gtest.h>
#include <spng.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "tests/end_to_end/support/readme_jobs.h"
#include "tests/end_to_end/support/run_program.h"
#include "tests/end_to_end/support/training_runs.h"
#include "tests/support/as_words.h"
#include "tests/support/contains.h"
#include "tests/worker/input/array/npy_bytes.h"
#include "tests/worker/input/packed_files.h"
#include "tests/worker/input/record/record_folders.h"

namespace syncopate::test {
namespace {

constexpr OtbtfForm kForm = {.train = 16, .valid = 2, .test = 3, .side = 64, .channels = 4};

// Returns the classes of a label map that predict wrote: the indices of its palette.
std::vector<std::uint8_t> classes_in(const std::string& png) {
  const Bytes file = read_file(png);
  const std::unique_ptr<spng_ctx, decltype(&spng_ctx_free)> reader(spng_ctx_new(0), spng_ctx_free);
  spng_set_png_buffer(reader.get(), file.data(), file.size());
  std::vector<std::uint8_t> classes(static_cast<std::size_t>(kForm.side * kForm.side));
  EXPECT_EQ(spng_decode_image(reader.get(), classes.data(), classes.size(), SPNG_FMT_RAW, 0), 0);
  return classes;
}

std::string percent(double fraction) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.2f%%", 100.0 * fraction);
  return text.data();
}

TEST(PrecisionAndRecall, OfEachClassAreThoseOfTheLabelMapsThatPredictWrites) {
  TrainingRuns runs;
  write_otbtf(runs / "patches", kForm);
  const ProgramResult trained = successful(runs.train(
      mirrored(2), job_in_readme("fcn", {{"--data", "otbtf:" + (runs / "patches").string()},
                                         {"--learning-rate", "2e-3"},
                                         {"--epochs", "4"}}) +
                       Arguments{"--checkpoint-dir", runs / "ck", "--checkpoint-every", "8"}));

  std::vector<std::uint16_t> values;
  std::vector<std::int32_t> labels;
  for (int n = kForm.train + kForm.valid; n < kForm.train + kForm.valid + kForm.test; ++n) {
    const Patch patch = patch_of(n, kForm);
    values.insert(values.end(), patch.values.begin(), patch.values.end());
    labels.insert(labels.end(), patch.labels.begin(), patch.labels.end());
  }
  write_file(runs / "patches.npy", npy_bytes("<u2", "(3, 64, 64, 4)", bytes_of(values)));
  successful(run_syncopate(as_words("predict --threads 1 --checkpoint",
                                    runs / "ck/checkpoint-000000000008.safetensors", "--maps",
                                    runs / "maps", runs / "patches.npy")));
  std::vector<std::uint8_t> found;
  for (int n = 0; n < kForm.test; ++n) {
    const std::vector<std::uint8_t> map =
        classes_in(runs / ("maps/patches-" + std::to_string(n) + ".png"));
    found.insert(found.end(), map.begin(), map.end());
  }

  const auto classes = runs.summary().at("test_classes");
  ASSERT_EQ(classes.size(), 2U);
  for (const int number : {0, 1}) {
    double of_class = 0.0;
    double taken_for_it = 0.0;
    double correct = 0.0;
    for (std::size_t i = 0; i < labels.size(); ++i) {
      if (labels[i] == number) ++of_class;
      if (found[i] == number) ++taken_for_it;
      if (labels[i] == number && found[i] == number) ++correct;
    }
    ASSERT_GT(correct, 0.0);
    ASSERT_LT(correct, std::max(of_class, taken_for_it)) << "nothing is wrong: nothing is tested";
    const auto& row = classes[static_cast<std::size_t>(number)];
    EXPECT_EQ(row.at("samples"), of_class);
    EXPECT_DOUBLE_EQ(row.at("precision").get<double>(), correct / taken_for_it);
    EXPECT_DOUBLE_EQ(row.at("recall").get<double>(), correct / of_class);
    for (const double fraction : {correct / taken_for_it, correct / of_class}) {
      EXPECT_TRUE(contains(trained.out, " " + percent(fraction)));
    }
  }
}

}  // namespace
}  // namespace syncopate::test
