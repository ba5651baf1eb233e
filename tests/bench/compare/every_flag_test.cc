// Tests that the virtual clock honours every flag of train, names it as one that changes nothing,
// or refuses it.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <sstream>
#include <string>
#include <variant>
#include <vector>

#include "bench/compare/run_plan.h"
#include "bench/compare/train_flags.h"
#include "bench/compare/virtual_run.h"
#include "deploy/cli/command_line.h"
#include "models/base/environment.h"
#include "models/base/errors.h"
#include "tests/bench/virtual_clock/virtual_case.h"
#include "tests/support/contains.h"
#include "tests/support/thrown.h"

namespace syncopate::bench {
namespace {

using Words = std::vector<std::string>;

enum class Answer {
  kTrainsOtherwise,  // weights or times differ from those of a run without the flag
  kOpensData,        // the value reaches the options with which the data are opened
  kChangesNothing,   // the note names the flag, and neither weights nor times differ
  kRefused,          // with the reason and what to type
  kFails,            // the run throws: no file or node has this name
};
using enum Answer;

struct Case {
  std::string value;  // "" for a switch
  Answer answer = kTrainsOtherwise;
  std::string strategy = "mirrored";
  Words with = {};  // flags that both runs have
};

const std::map<std::string, Case> kCases = {
    {"--head", {"dense:16"}},
    {"--normalize", {"0.5/0.25"}},
    {"--augment", {"crop-flip"}},
    {"--threads", {"2", kTrainsOtherwise, "mirrored"}},
    {"--cut", {"nowhere", kFails, "pipeline"}},
    {"--optimizer", {"sgd"}},
    {"--learning-rate", {"0.02"}},
    {"--momentum", {"0.5", kTrainsOtherwise, "mirrored", {"--optimizer", "momentum"}}},
    {"--nesterov", {"", kTrainsOtherwise, "mirrored", {"--optimizer", "momentum"}}},
    {"--weight-decay", {"0.1"}},
    {"--beta1", {"0.5"}},
    {"--beta2", {"0.5"}},
    {"--epsilon", {"0.1"}},
    {"--lr-schedule", {"cosine"}},
    {"--lr-milestones",
     {"0.25", kTrainsOtherwise, "mirrored", {"--lr-schedule", "step", "--lr-milestones", "0.75"}}},
    {"--lr-factor",
     {"0.5", kTrainsOtherwise, "mirrored", {"--lr-schedule", "step", "--lr-milestones", "0.25"}}},
    {"--warmup-epochs", {"0.25"}},
    {"--learning-rate-scale", {"none"}},
    {"--reference-batch-size", {"4"}},
    {"--label-smoothing", {"0.2"}},
    {"--outer-learning-rate", {"0.5", kTrainsOtherwise, "local-sgd:average:4"}},
    {"--outer-momentum", {"0.5", kTrainsOtherwise, "local-sgd:average:4"}},
    {"--outer-nesterov",
     {"", kTrainsOtherwise, "local-sgd:average:4", {"--outer-momentum", "0.5"}}},
    {"--outer-scale-by-rate",
     {"",
      kTrainsOtherwise,
      "local-sgd:average:4",
      {"--outer-momentum", "0.5", "--lr-schedule", "cosine"}}},
    {"--local-from", {"0.25", kTrainsOtherwise, "local-sgd:post-local:4", {"--local-from", "0.5"}}},
    {"--inner-state",
     {"reset", kTrainsOtherwise, "local-sgd:average:4", {"--optimizer", "momentum"}}},
    {"--compress", {"bf16", kTrainsOtherwise, "parameter-server:async"}},
    {"--partition", {"fixed:3", kTrainsOtherwise, "parameter-server:async"}},
    {"--init-from", {"/nonexistent/weights.safetensors", kFails}},
    {"--image-size", {"48x64", kOpensData}},
    {"--exif", {"", kOpensData}},
    {"--skip-bad-records", {"3", kOpensData}},
    {"--image-feature", {"picture", kOpensData}},
    {"--label-feature", {"class", kOpensData}},
    {"--raw-shape", {"8x8x1:u8", kOpensData}},
    {"--cache-dir", {"/nonexistent", kChangesNothing}},
    {"--cache-mb", {"1", kChangesNothing}},
    {"--input-threads", {"2", kChangesNothing}},
    {"--prefetch", {"4", kChangesNothing}},
    {"--share-devices", {"", kChangesNothing}},
    {"--deterministic", {"", kChangesNothing}},
    {"--transport", {"tcp", kChangesNothing, "parameter-server:async"}},
    {"--bucket-mb", {"1", kChangesNothing, "parameter-server:async"}},
    {"--collective", {"ring", kChangesNothing, "multi-worker-mirrored"}},
    {"--rendezvous-timeout", {"7", kChangesNothing}},
    {"--peer-timeout", {"7", kChangesNothing}},
    {"--no-progress", {"", kChangesNothing}},
    {"--devices", {"cuda", kRefused}},
    {"--precision", {"f32", kChangesNothing}},
    {"--batch-norm", {"sync", kRefused}},
    {"--clip-norm", {"1", kRefused}},
    {"--ema", {"0.9", kRefused}}};

// Returns the flags that `syncopate train --help` shows.
Words flags_of_help() {
  const CommandOptions help = parse_train(Words{"--help"}, Environment());
  std::istringstream lines(std::get<TextOptions>(help).text);
  Words flags;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("  --")) continue;
    flags.push_back(line.substr(2, line.find_first_of(" ,", 2) - 2));
  }
  return flags;
}

bool is_set_by_compare(const std::string& flag) {
  try {
    parse_shared_train_flags({flag});
  } catch (const UsageError& error) {
    const std::string what = error.what();
    return what.find("compare sets it") != what.npos || what.find("does not take it") != what.npos;
  }
  return false;
}

struct Setting {
  CompareOptions options;
  DataSplits data;
};

Setting setting_of(const Case& asked, const Words& flags) {
  Setting setting;
  setting.options.clock = Clock::kVirtual;
  setting.options.model = "mlp";
  setting.options.data = "synthetic:1x8x8:4:256";
  setting.options.batch_size_per_replica = 8;
  setting.options.epochs = 1;
  setting.options.variants = {parse_variant(asked.strategy, 2, 2)};
  setting.options.cluster.faults.service_time = {.kind = ServiceTimeKind::kConstant,
                                                 .mean_milliseconds = 1.0};
  setting.options.cluster.faults.link = {.delay_seconds = 0.001, .bytes_per_second = 1e6};
  setting.options.shared = parse_shared_train_flags(flags);
  setting.data = open_dataset(setting.options.data, {.cache_dir = {}, .seed = 1});
  return setting;
}

Summary train_with(const Setting& setting) {
  RecordedLines lines;
  const RunSpec run = plan_runs(setting.options, setting.data.train->size()).front();
  return run_virtually(run, setting.data, lines, {}, {});
}

std::string refusal_of(const CompareOptions& options) {
  return message_if_thrown<UsageError>(
      [&] { require_virtual(options.shared, options.variants.front()); });
}

void expect_answer(const std::string& flag, const Case& asked) {
  Words words = asked.with;
  words.push_back(flag);
  if (!asked.value.empty()) words.push_back(asked.value);
  const Setting setting = setting_of(asked, words);
  const std::string refusal = refusal_of(setting.options);
  if (asked.answer == kRefused) {
    EXPECT_EQ(refusal.find(flag + " " + asked.value), 0U) << refusal;
    EXPECT_TRUE(contains(refusal, "leave it out"));
    return;
  }
  EXPECT_EQ(refusal, "");
  const std::string note = neutral_flags_note(setting.options.shared, setting.options.variants);
  EXPECT_EQ(note.starts_with(flag + " changes"), asked.answer == kChangesNothing) << note;
  if (asked.answer == kFails) {
    EXPECT_THROW(train_with(setting), std::exception);
    return;
  }
  if (asked.answer == kOpensData) {
    TrainOptions opened;
    opened.image = data_options(setting.options.shared, "").image;
    EXPECT_EQ(text_of(opened, flag), asked.value.empty() ? "on" : asked.value);
    return;
  }
  const Summary with = train_with(setting);
  const Summary without = train_with(setting_of(asked, asked.with));
  const bool is_equal =
      with.weights_hash == without.weights_hash && with.seconds == without.seconds;
  EXPECT_EQ(is_equal, asked.answer == kChangesNothing);
}

TEST(VirtualClock, HonoursEveryFlagOfTrainOrRefusesIt) {
  const Words flags = flags_of_help();
  ASSERT_GT(flags.size(), 80U);
  for (const std::string& flag : flags) {
    SCOPED_TRACE(flag);
    const auto asked = kCases.find(flag);
    if (asked == kCases.end()) {
      EXPECT_TRUE(is_set_by_compare(flag)) << "add a row to the table of flags and a case here";
      continue;
    }
    expect_answer(flag, asked->second);
  }
  for (const auto& [flag, asked] : kCases) {
    EXPECT_EQ(std::ranges::count(flags, flag), 1) << flag << " is no flag of train";
  }
}

TEST(VirtualClock, RefusesFlagsOfTheDataForOneVariant) {
  CompareOptions options;
  options.variants = {parse_variant("mirrored{image-size=64}", 2, 2)};
  EXPECT_EQ(refusal_of(options),
            "mirrored{image-size=64}: under the virtual clock all variants read one data set; give "
            "--image-size after --, for all of them");
}

TEST(VirtualClock, RefusesAnAllReduceThatAddsInAnotherOrder) {
  CompareOptions options;
  options.variants = {parse_variant("multi-worker-mirrored{collective=mpi}", 2, 2)};
  EXPECT_EQ(refusal_of(options).find("--collective mpi: not available under the virtual clock"), 0U)
      << refusal_of(options);
}

}  // namespace
}  // namespace syncopate::bench
