#include "deploy/cli/names.h"

#include <gtest/gtest.h>

namespace syncopate {
namespace {

TEST(NearestName, IsTheOneThatATypingErrorTurnsIntoTheTypedWord) {
  EXPECT_EQ(nearest_name("adm", {"sgd", "momentum", "adam", "adamw"}), "adam");
  EXPECT_EQ(nearest_name("--modle", {"--data", "--model"}), "--model");
}

TEST(NearestName, IgnoresCaseAndUnderscores) {
  EXPECT_EQ(nearest_name("--WORLD_SIZE", {"--rank", "--world-size"}), "--world-size");
}

TEST(NearestName, IsAbsentWhereNoNameIsClose) {
  EXPECT_EQ(nearest_name("lion", {"sgd", "momentum", "adam"}), std::nullopt);
}

TEST(Suggestion, ListsEveryName) {
  EXPECT_EQ(suggest("sgb", {"sgd", "adam"}), "; did you mean 'sgd'? Choose one of sgd, adam");
  EXPECT_EQ(suggest("zzzzzz", {"sgd", "adam"}), "; choose one of sgd, adam");
}

TEST(Suggestion, KnowsTheValuesOfOtherPrograms) {
  const std::vector<std::string_view> strategies = {"mirrored", "multi-worker-mirrored",
                                                    "parameter-server"};
  for (const auto& [typed, ours] :
       {std::pair{"ps", "parameter-server"}, std::pair{"horovod", "multi-worker-mirrored"},
        std::pair{"DDP", "multi-worker-mirrored"}, std::pair{"MirroredStrategy", "mirrored"},
        std::pair{"MultiWorkerMirroredStrategy", "multi-worker-mirrored"}}) {
    EXPECT_TRUE(suggest_value("--strategy", typed, strategies)
                    .starts_with("; did you mean '" + std::string(ours) + "'?"))
        << typed;
  }
  EXPECT_TRUE(
      suggest_value("--collective", "gloo", {"ring", "mpi"}).starts_with("; did you mean 'ring'?"));
}

TEST(MeantFlag, KnowsTheFlagsOfOtherPrograms) {
  const std::vector<std::string_view> flags = {"--learning-rate", "--devices",       "--batch-size",
                                               "--epochs",        "--world-size",    "--rendezvous",
                                               "--input-threads", "--checkpoint-dir"};
  for (const auto& [typed, meant] :
       {std::pair{"--lr", "--learning-rate"}, std::pair{"--gpus", "--devices cuda --replicas N"},
        std::pair{"--batch", "--batch-size"}, std::pair{"-e", "--epochs"},
        std::pair{"--world_size", "--world-size"},
        std::pair{"--master_addr", "--rendezvous HOST:PORT"},
        std::pair{"--num-workers", "--input-threads N"},
        std::pair{"--output_dir", "--checkpoint-dir"}}) {
    EXPECT_EQ(flag_meant_by(typed, flags), meant) << typed;
  }
  EXPECT_EQ(flag_meant_by("--colour", flags), std::nullopt);
}

TEST(MeantFlag, IsAFlagOfTheCommand) {
  EXPECT_EQ(flag_meant_by("--num-workers", {"--workers"}), "--workers");
  EXPECT_EQ(flag_meant_by("--lr", {"--workers"}), std::nullopt);
}

}  // namespace
}  // namespace syncopate
