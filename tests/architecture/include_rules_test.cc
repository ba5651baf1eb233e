// Tests the include rules on source text with deliberate mistakes, to show that the checker finds
// each of them.
#include "tests/architecture/include_rules.h"

#include <gtest/gtest.h>

namespace syncopate::architecture {
namespace {

TEST(IncludeLayers, PointDown) {
  EXPECT_TRUE(may_include("bench/main.cc", "deploy/cli/command_line.h"));
  EXPECT_TRUE(may_include("worker/train/train_step.cc", "strategies/strategy.h"));
  EXPECT_TRUE(may_include("strategies/parameter_server.cc", "ps/client/client.h"));
  EXPECT_TRUE(may_include("tests/worker/train/metrics_test.cc", "worker/train/metrics.h"));
  EXPECT_TRUE(may_include("models/backend/backend.h", "models/graph/graph.h"));
  EXPECT_TRUE(may_include("models/backend/cpu/conv.cc", "models/backend/model.h"));
}

TEST(IncludeLayers, NeverPointUp) {
  EXPECT_FALSE(may_include("models/base/log.cc", "models/tensor/tensor.h"));
  EXPECT_FALSE(may_include("models/graph/graph.h", "strategies/strategy.h"));
  EXPECT_FALSE(may_include("ps/shard/shard.cc", "strategies/strategy.h"));
  EXPECT_FALSE(may_include("strategies/strategy.h", "worker/train/train_step.h"));
  EXPECT_FALSE(may_include("worker/train/train_loop.cc", "deploy/cli/command_line.h"));
  EXPECT_FALSE(may_include("deploy/main.cc", "bench/harness/measure.h"));
  EXPECT_FALSE(may_include("bench/main.cc", "tests/reference/interpreter.h"));
}

TEST(IncludeLayers, KeepNeighboursApart) {
  EXPECT_FALSE(may_include("models/zoo/zoo.cc", "models/backend/backend.h"));
  EXPECT_FALSE(may_include("models/backend/cpu/backend.cc", "models/zoo/zoo.h"));
  EXPECT_FALSE(may_include("models/graph/graph.cc", "models/optim/optimizer.h"));
  EXPECT_FALSE(may_include("models/optim/schedule.cc", "models/graph/graph.h"));
}

TEST(SourceRules, AcceptAnOrdinaryHeader) {
  EXPECT_EQ(check_source("models/graph/graph.h",
                         "// A network as data.\n#pragma once\n\n#include <vector>\n\n"
                         "#include \"models/tensor/tensor.h\"\nnamespace syncopate {}\n"),
            Violations{});
}

TEST(SourceRules, NameTheFileAndLineOfAnIncludeThatPointsUp) {
  const Violations found = check_source("models/base/log.cc",
                                        "#include <string>\n#include \"worker/train/metrics.h\"\n");
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0],
            "models/base/log.cc:2: includes \"worker/train/metrics.h\", which is not below it: an "
            "include only "
            "points down");
}

TEST(SourceRules, SeeAnIncludeWithSpacesInIt) {
  EXPECT_EQ(
      check_source("models/base/log.cc", "  #  include   \"worker/train/metrics.h\"  // why\n")
          .size(),
      1U);
}

TEST(SourceRules, WantIncludesFromTheRoot) {
  EXPECT_EQ(check_source("worker/train/train_step.cc", "#include \"train_step.h\"\n").size(), 1U);
  EXPECT_EQ(
      check_source("worker/train/train_step.cc", "#include \"../models/base/log.h\"\n").size(), 1U);
}

TEST(SourceRules, KeepSlowLibrariesOutOfHeaders) {
  for (const char* library :
       {"CLI/CLI.hpp", "spdlog/spdlog.h", "fmt/format.h", "nlohmann/json.hpp"}) {
    const std::string line = std::string("#include <") + library + ">\n";
    EXPECT_EQ(check_source("deploy/cli/command_line.h", "#pragma once\n" + line).size(), 1U)
        << library;
    EXPECT_EQ(check_source("deploy/cli/options.cc", line), Violations{}) << library;
  }
}

TEST(SourceRules, LetHeadersNameATypeOfASlowLibrary) {
  EXPECT_EQ(
      check_source("tests/end_to_end/lines.h", "#pragma once\n#include <nlohmann/json_fwd.hpp>\n"),
      Violations{});
}

TEST(SourceRules, RefuseConditionalCompilationOnALibrary) {
  EXPECT_EQ(check_source("strategies/mpi.cc", "#ifdef HAVE_MPI\n#endif\n").size(), 1U);
  EXPECT_EQ(check_source("strategies/mpi.cc", "#if defined(SYNCOPATE_WITH_NCCL)\n#endif\n").size(),
            1U);
  EXPECT_EQ(check_source("strategies/mpi.cc", "#if __has_include(<mpi.h>)\n#endif\n").size(), 1U);
  EXPECT_EQ(check_source("models/base/isa.cc", "#ifdef __SANITIZE_THREAD__\n#endif\n"),
            Violations{});
}

TEST(SourceRules, HoldHeadersToMoreThanSources) {
  const std::string text = "using namespace std;\n#define MAX(a, b) 1\n";
  // The header violates three rules: `using namespace`, the macro MAX, no #pragma once.
  EXPECT_EQ(check_source("worker/train/progress.h", text).size(), 3U);
  EXPECT_EQ(check_source("worker/train/progress.cc", text), Violations{});
  EXPECT_EQ(check_source("models/base/mutex.h", "#pragma once\n#define GUARDED_BY(x)\n"),
            Violations{});
}

TEST(SourceRules, RefuseAFileOutsideTheSourceTree) {
  EXPECT_EQ(check_source("common/strings.cc", "").size(), 1U);
  EXPECT_EQ(check_source("models/graph.cc", "").size(), 1U);
}

TEST(RootRules, ListTheFilesOfTheRoot) {
  std::vector<std::string> entries = {
      "models", "ps",    "strategies", "worker",         "deploy",
      "bench",  "tests", "README.md",  "CMakeLists.txt", "CMakePresets.json",
      ".ci",    "build"};
  EXPECT_EQ(check_root(entries, {"build"}), Violations{});
  EXPECT_EQ(check_root(entries, {}).size(), 1U);
  entries.emplace_back("utils");
  EXPECT_EQ(check_root(entries, {"build"}).size(), 1U);
  entries.erase(entries.begin());
  EXPECT_EQ(check_root(entries, {"build"}).size(), 2U);
}

}  // namespace
}  // namespace syncopate::architecture
