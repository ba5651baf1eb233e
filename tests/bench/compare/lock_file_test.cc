// Tests the locks of processes that share the runs of a comparison.
#include "bench/compare/lock_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <fstream>
#include <memory>
#include <optional>
#include <string>

#include "bench/compare/comparison_parts.h"
#include "bench/compare/report/comparison.h"
#include "bench/compare/run_plan.h"
#include "bench/compare/run_trainer.h"
#include "models/base/errors.h"
#include "tests/bench/compare/two_variants.h"
#include "tests/support/contains.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/thrown.h"

namespace syncopate::bench {
namespace {

namespace fs = std::filesystem;

TEST(LockFile, ExistsWhileItIsHeldAndNamesItsHolder) {
  const TemporaryFolder scratch;
  const fs::path path = scratch / "lock";
  std::ofstream(path)
      << "process 1, which was killed, on host some-host-whose-name-is-longer-than-this-one";
  {
    const auto first = LockFile::try_to_take(path);
    ASSERT_TRUE(first);
    EXPECT_TRUE(LockFile::holder_of(path).starts_with("process " + std::to_string(getpid()) + " "));
    EXPECT_TRUE(lacks(LockFile::holder_of(path), "than-this-one"));
    EXPECT_FALSE(LockFile::try_to_take(path));
  }
  EXPECT_FALSE(fs::exists(path));
  EXPECT_TRUE(LockFile::try_to_take(path));
}

TEST(LockFile, ShowsThatItsHolderIsAlive) {
  const TemporaryFolder scratch;
  const auto lock = LockFile::try_to_take(scratch / "lock");
  const auto past = fs::file_time_type::clock::now() - std::chrono::hours(1);
  fs::last_write_time(scratch / "lock", past);
  lock->renew();
  EXPECT_GT(fs::last_write_time(scratch / "lock"), past + std::chrono::minutes(30));
}

// The runs of a comparison that processes share.
class SharedTraining : public testing::Test {
 protected:
  SharedTraining() {
    options_.model = "mlp";
    options_.data = "synthetic:1x8x8:4:64";
    options_.clock = Clock::kVirtual;
    options_.shared_command = "the command";
    data_ = open_classes(options_);
    part_.options = options_;
    part_.runs = plan_runs(options_, data_.train->size());
    part_.heads = planned_heads(options_, part_.runs, std::nullopt);
    part_.files = std::make_unique<RunFiles>(scratch_.path(), options_.shared_command);
    begin();
  }

  void begin() {
    part_.files->begin(part_.heads, {.command = "the command", .machine = {}, .is_shared = true},
                       /*replace=*/false);
  }
  // Trains the first run. Returns false after a signal.
  bool train_first() {
    const RunTrainer trainer{data_, signals_, *display_, false,
                             /*others_timeout=*/std::chrono::milliseconds(50)};
    return trainer.train({{&part_, &part_.runs.front()}}, 1);
  }
  fs::path lock_of(std::size_t run) const { return part_.files->lock(part_.runs.at(run)); }

  const TemporaryFolder scratch_;
  CompareOptions options_ = two_variants();
  ComparisonPart part_;

 private:
  StopSignal signals_;
  const std::unique_ptr<ProgressDisplay> display_ = make_silent_display();
  DataSplits data_;
};

TEST_F(SharedTraining, GivesUpOnAProcessWithoutASignOfLife) {
  const auto of_another = LockFile::try_to_take(lock_of(0));
  const std::string error = message_if_thrown<PeerError>([&] { train_first(); });
  EXPECT_TRUE(contains(error, "--share-runs: process " + std::to_string(getpid()) + " on host ",
                       ", which trains mirrored, seed 1, gave no sign of life for 0.05 s"));
}

TEST_F(SharedTraining, StopsWaitingAfterASignal) {
  const auto of_another = LockFile::try_to_take(lock_of(0));
  part_.options.jobs = 0;  // otherwise the signal may arrive before the wait
  std::raise(SIGTERM);
  EXPECT_FALSE(train_first());
}

TEST_F(SharedTraining, RemovesTheLocksOfKilledProcessesWhenItBegins) {
  std::ofstream(lock_of(0)) << "process 1 on host a";
  const auto held = LockFile::try_to_take(lock_of(1));
  begin();
  EXPECT_FALSE(fs::exists(lock_of(0)));
  EXPECT_TRUE(fs::exists(lock_of(1)));
}

TEST_F(SharedTraining, NamesTheMachinesOfAllProcesses) {
  for (const char* host : {"a", "b", "a"}) {
    part_.files->begin(part_.heads,
                       {.command = "the command", .machine = {.host = host}, .is_shared = true},
                       /*replace=*/false);
  }
  Words hosts;
  for (const Machine& machine : read_comparison(scratch_).machines) hosts.push_back(machine.host);
  EXPECT_EQ(hosts, (Words{"", "a", "b"})) << "the first is that of the constructor";
}

}  // namespace
}  // namespace syncopate::bench
