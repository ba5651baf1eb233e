// Tests what train --strategy local-sgd does with every flag of train.
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "deploy/cli/command_line.h"
#include "models/base/errors.h"
#include "tests/support/as_words.h"
#include "tests/support/contains.h"
#include "tests/support/thrown.h"
#include "worker/run/flags/train_flag.h"

namespace syncopate {
namespace {

// Worker 0 of 2.
const Environment kTasks({{"SYNCOPATE_ROLE", "worker"},
                          {"SYNCOPATE_INDEX", "0"},
                          {"SYNCOPATE_WORKERS", "2"},
                          {"SYNCOPATE_NONCE", "a"},
                          {"SYNCOPATE_RENDEZVOUS", "127.0.0.1:1"}});

// Returns the words between the blanks of a text.
Arguments words_of(const std::string& text) {
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), {}};
}

// Returns the line with which the flags are refused; "" if they are not.
std::string refusal_of(const Arguments& words) {
  return message_if_thrown<UsageError>([&] { (void)parse_train(words, kTasks); });
}
std::string shared_refusal(const Arguments& more, const Arguments& push = {}) {
  return message_if_thrown<UsageError>([&] {
    (void)parse_train(
        as_words("--strategy central-storage --share-devices --consistency async", push, more),
        Environment(Environment::Variables{}));
  });
}
std::string local_refusal(const Arguments& more) {
  return refusal_of(as_words("--strategy local-sgd --share-devices --sync-every 8", more));
}

// For each flag, words that use it. Flags that need others bring them along.
const std::map<std::string, std::string>& uses() {
  static const std::map<std::string, std::string> kUses = {
      {"--model", "--model mlp"},
      {"--head", "--head dense:16"},
      {"--normalize", "--normalize 0.5/0.5"},
      {"--data", "--data digits"},
      {"--cache-dir", "--cache-dir /tmp"},
      {"--seed", "--seed 3"},
      {"--image-size", "--image-size 32"},
      {"--exif", "--exif"},
      {"--cache-mb", "--cache-mb 10"},
      {"--skip-bad-records", "--skip-bad-records 2"},
      {"--image-feature", "--image-feature image"},
      {"--label-feature", "--label-feature label"},
      {"--raw-shape", "--raw-shape 8x8x1:u8"},
      {"--split", "--split val=0.1"},
      {"--augment", "--augment crop-flip"},
      {"--input-threads", "--input-threads 2"},
      {"--prefetch", "--prefetch 2"},
      {"--strategy", ""},
      {"--devices", "--devices cuda:0"},
      {"--precision", "--precision f32"},
      {"--replicas", "--replicas 2"},
      {"--stages", "--stages 2"},
      {"--cut", "--cut conv1"},
      {"--share-devices", ""},
      {"--threads", "--threads 1"},
      {"--collective", "--collective nccl"},
      {"--transport", "--transport tcp"},
      {"--bucket-mb", "--bucket-mb 1"},
      {"--batch-norm", "--batch-norm sync"},
      {"--deterministic", "--deterministic"},
      {"--epochs", "--epochs 2"},
      {"--steps", "--steps 20"},
      {"--max-seconds", "--max-seconds 5"},
      {"--batch-size-per-replica", "--batch-size-per-replica 8"},
      {"--batch-size", "--batch-size 8"},
      {"--optimizer", "--optimizer sgd"},
      {"--learning-rate", "--learning-rate 0.1"},
      {"--momentum", "--optimizer momentum --momentum 0.5"},
      {"--nesterov", "--optimizer momentum --nesterov"},
      {"--weight-decay", "--weight-decay 0.1"},
      {"--beta1", "--beta1 0.8"},
      {"--beta2", "--beta2 0.8"},
      {"--epsilon", "--epsilon 1e-7"},
      {"--lr-schedule", "--lr-schedule cosine"},
      {"--lr-milestones", "--lr-schedule step --lr-milestones 1,2"},
      {"--lr-factor", "--lr-schedule step --lr-milestones 1,2 --lr-factor 0.5"},
      {"--warmup-epochs", "--warmup-epochs 1"},
      {"--learning-rate-scale", "--learning-rate-scale linear"},
      {"--reference-batch-size", "--learning-rate-scale linear --reference-batch-size 32"},
      {"--label-smoothing", "--label-smoothing 0.1"},
      {"--accumulate", "--accumulate 2"},
      {"--clip-norm", "--clip-norm 1"},
      {"--ema", "--ema 0.9"},
      {"--stop-at", "--stop-at accuracy=0.9"},
      {"--early-stop", "--early-stop metric=accuracy,patience=3"},
      {"--reduce-on-plateau", "--reduce-on-plateau metric=loss,patience=3,factor=0.1"},
      {"--keep-best", "--keep-best --checkpoint-dir /tmp/run"},
      {"--consistency", "--consistency sync"},
      {"--push", "--push displacement"},
      {"--max-staleness", "--max-staleness 2"},
      {"--backup-workers", "--backup-workers 1"},
      {"--quorum", "--quorum 2"},
      {"--grace", "--grace 0.5"},
      {"--staleness-rule", "--staleness-rule dc"},
      {"--compress", "--compress bf16"},
      {"--partition", "--partition fixed:2"},
      {"--rendezvous-timeout", "--rendezvous-timeout 5"},
      {"--peer-timeout", "--peer-timeout 5"},
      {"--checkpoint-dir", "--checkpoint-dir /tmp/run"},
      {"--checkpoint-every", "--checkpoint-dir /tmp/run --checkpoint-every 5"},
      {"--keep-checkpoints", "--checkpoint-dir /tmp/run --keep-checkpoints 2"},
      {"--resume", "--checkpoint-dir /tmp/run --resume"},
      {"--init-from", "--init-from /tmp/weights"},
      {"--eval-every", "--eval-every 2"},
      {"--eval-every-steps", "--eval-every-steps 2"},
      {"--eval-when", "--eval-when end"},
      {"--metrics", "--metrics /tmp/m.jsonl"},
      {"--tensorboard", "--tensorboard /tmp/t"},
      {"--log-every", "--log-every 2"},
      {"--trace", "--trace /tmp/t.json"},
      {"--no-progress", "--no-progress"},
      {"--snapshot-every", "--snapshot-every 5"},
      {"--record", "--record /tmp/r"},
      {"--service-time", "--service-time constant:5"},
      {"--slow", "--service-time constant:5 --slow worker=0,factor=2"},
      {"--pause", "--pause worker=0,at=1s,for=1s"},
      {"--link-delay", "--link-delay 1ms"},
      {"--link-rate", "--link-rate 1gbit"},
  };
  return kUses;
}

// Flags of local updates only.
const std::map<std::string, std::string> kOwnUses = {
    {"--sync-every", "--sync-every 8"},
    {"--outer", "--outer diloco"},
    {"--outer-learning-rate", "--outer-learning-rate 0.5"},
    {"--outer-momentum", "--outer-momentum 0.5"},
    {"--outer-nesterov", "--outer-momentum 0.5 --outer-nesterov"},
    {"--inner-state", "--inner-state reset"},
    {"--local-from", "--outer post-local --local-from 1.5"},
    {"--sync-groups", "--replicas 2 --sync-groups 4"},
    {"--outer-scale-by-rate", "--outer-momentum 0.5 --outer-scale-by-rate"}};

// Values that synchronous training takes and local updates refuse.
const std::set<std::string> kRefused = {"--devices", "--collective", "--batch-norm", "--ema"};

// A flag that is honoured reaches the code that all synchronous strategies share.
TEST(LocalSgdFlags, AreHonouredOrRefusedInOneLine) {
  for (const TrainFlag& flag : train_flags()) {
    if (flag.field == nullptr || kOwnUses.contains(flag.name)) continue;
    ASSERT_TRUE(uses().contains(flag.name)) << "say what local-sgd does with " << flag.name;
    const std::string& use = uses().at(flag.name);
    const std::string synchronous =
        refusal_of(as_words("--strategy multi-worker-mirrored --share-devices", words_of(use)));
    const std::string local = local_refusal(words_of(use));
    if (kRefused.contains(flag.name)) {
      EXPECT_EQ(synchronous, "") << use;
      EXPECT_NE(local, "") << use;
      EXPECT_TRUE(contains(local, "local-sgd")) << local;
    } else {
      EXPECT_EQ(local, synchronous) << use;
      EXPECT_TRUE(local.empty() || contains(local, " requires --strategy ")) << local;
    }
    EXPECT_FALSE(contains(local, "\n")) << local;
  }
}

TEST(LocalSgdFlags, BelongToLocalSgd) {
  for (const auto& [flag, use] : kOwnUses) {
    EXPECT_EQ(local_refusal(words_of(use)), "");
    EXPECT_TRUE(contains(
        refusal_of(as_words("--strategy multi-worker-mirrored --share-devices", words_of(use))),
        "requires --strategy local-sgd"))
        << flag;
  }
}

// Values that workers with gradients take and workers with displacements refuse.
const std::set<std::string> kRefusedWithDisplacements = {"--devices", "--batch-norm", "--ema",
                                                         "--staleness-rule", "--consistency"};
// Flags of local updates that workers with displacements refuse.
const std::set<std::string> kOfExchanges = {"--local-from", "--sync-groups",
                                            "--outer-scale-by-rate"};

TEST(DisplacementFlags, AreHonouredOrRefusedInOneLine) {
  const Arguments push = as_words("--push displacement --sync-every 8");
  EXPECT_EQ(shared_refusal({}, push), "");
  for (const TrainFlag& flag : train_flags()) {
    if (flag.field == nullptr || kOwnUses.contains(flag.name) || flag.name == "--push") continue;
    const std::string& use = uses().at(flag.name);
    const std::string with_gradients = shared_refusal(words_of(use));
    const std::string refused = shared_refusal(words_of(use), push);
    if (kRefusedWithDisplacements.contains(flag.name)) {
      EXPECT_EQ(with_gradients, "") << use;
      EXPECT_TRUE(contains(refused, "displacement") || contains(refused, "--push requires"))
          << use << ": " << refused;
    } else {
      EXPECT_EQ(refused, with_gradients) << use;
    }
    EXPECT_FALSE(contains(refused, "\n")) << refused;
  }
  for (const auto& [flag, use] : kOwnUses) {
    EXPECT_EQ(shared_refusal(words_of(use), push).empty(), !kOfExchanges.contains(flag)) << use;
    EXPECT_TRUE(contains(shared_refusal(words_of(use)), "requires --strategy local-sgd")) << use;
  }
  EXPECT_TRUE(contains(shared_refusal(as_words("--inner-state average"), push), "keep or reset"));
  // The rate would be divided twice.
  EXPECT_TRUE(
      contains(shared_refusal(as_words("--replicas 2 --learning-rate-scale inverse-workers"), push),
               "the outer step divides already"));
  EXPECT_EQ(shared_refusal(as_words("--replicas 2 --learning-rate-scale inverse-workers "
                                    "--outer-learning-rate 1"),
                           push),
            "");
  EXPECT_EQ(shared_refusal(as_words("--outer delayed-nesterov:4"), push), "");
  EXPECT_EQ(shared_refusal(as_words("--replicas 2 --learning-rate-scale inverse-workers --outer "
                                    "delayed-nesterov:4"),
                           push),
            "");
  EXPECT_TRUE(contains(shared_refusal(as_words("--outer delayed-nesterov"), push), ":N"));
  EXPECT_TRUE(contains(local_refusal(as_words("--outer delayed-nesterov:4")),
                       "requires --push displacement"));
}

TEST(QuorumFlags, AreRefusedInOneLineIfTheyContradict) {
  const auto refusal = [](const std::string& words, const Environment::Variables& variables = {}) {
    return message_if_thrown<UsageError>([&] {
      (void)parse_train(as_words("--share-devices --strategy", words_of(words)),
                        Environment(variables));
    });
  };
  const std::string replicas = "central-storage --replicas 3 --consistency ";
  const std::string rounds = "quorum --push displacement --sync-every 8 ";
  EXPECT_EQ(refusal(replicas + rounds + "--quorum 3 --grace 0.5 --outer diloco"), "");
  for (const auto& [words, line] : std::map<std::string, std::string>{
           {"quorum", "give --push displacement --sync-every N"},
           {"async --quorum 2", "--quorum requires --consistency quorum"},
           {"sync --grace 2", "--grace requires --consistency quorum"},
           {rounds + "--quorum 4", "--quorum 4: the job has 3 workers"},
           {rounds + "--quorum 0", "expected a whole number, at least 1"},
           {rounds + "--grace 1", "--grace requires --quorum"},
           {rounds + "--grace -1", "expected seconds from 0 to 86400"},
           {rounds + "--outer delayed-nesterov:4", "choose --outer diloco"}}) {
    EXPECT_TRUE(contains(refusal(replicas + words), line)) << refusal(replicas + words);
  }
  const std::string servers = refusal("parameter-server --consistency " + rounds,
                                      {{"SYNCOPATE_ROLE", "worker"},
                                       {"SYNCOPATE_INDEX", "0"},
                                       {"SYNCOPATE_WORKERS", "2"},
                                       {"SYNCOPATE_SERVERS", "2"},
                                       {"SYNCOPATE_NONCE", "a"},
                                       {"SYNCOPATE_RENDEZVOUS", "127.0.0.1:1"}});
  EXPECT_TRUE(contains(servers, "give --servers 1")) << servers;
}

TEST(LocalSgdFlags, DecideUpdatesAndMustBeEqualOnAllTasks) {
  std::set<std::string> of_local_updates;
  for (const TrainFlag& flag : train_flags()) {
    if (!kOwnUses.contains(flag.name)) continue;
    of_local_updates.insert(flag.name);
    EXPECT_TRUE(flag.decides_updates) << flag.name;
    EXPECT_EQ(flag.agreement, TrainFlag::Agreement::kRequired) << flag.name;
  }
  EXPECT_EQ(of_local_updates.size(), kOwnUses.size());
}

TEST(LocalSgdFlags, GiveTheLengthOfARound) {
  EXPECT_TRUE(contains(refusal_of(as_words("--strategy local-sgd")), "requires --sync-every N"));
  EXPECT_TRUE(contains(refusal_of(as_words("--strategy local-sgd --sync-every 0")),
                       "expected a whole number from 1"));
}

}  // namespace
}  // namespace syncopate
