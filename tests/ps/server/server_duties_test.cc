#include "ps/server/server_duties.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <optional>
#include <string>

#include "models/base/deadline.h"
#include "models/base/errors.h"
#include "tests/ps/server/data_service_case.h"
#include "tests/support/contains.h"

namespace syncopate::ps::testing {
namespace {

TEST(ServerDuties, IgnoreMessagesThatLackADeclaration) {
  const ServerOptions options;
  DataService data({.record = {}});
  ServerDuties duties(options, data, [](const std::string&) {});
  duties.on_message(wire::make_message(wire::DeclaredT()));
  wire::FreezeT freeze;
  freeze.snapshot = 1;
  duties.on_message(wire::make_message(freeze));
  wire::SnapshotT snapshot;
  snapshot.snapshot = 1;
  duties.on_message(wire::make_message(std::move(snapshot)));
  EXPECT_TRUE(duties.take_replies().empty());
}

using Snapshots = std::vector<std::uint64_t>;

// Returns the next reply, if it has this type.
template <typename BodyT>
std::optional<BodyT> reply(ServerDuties& duties, DataService& data) {
  const Deadline deadline = Deadline::after(std::chrono::seconds(10));
  while (!deadline.passed()) {
    const std::vector<wire::MessageT> said = duties.take_replies();
    if (!said.empty()) {
      if (said[0].body.type != wire::BodyUnionTraits<BodyT>::enum_value) return std::nullopt;
      return *static_cast<const BodyT*>(said[0].body.value);
    }
    std::array<pollfd, 2> waiting{
        {{duties.descriptor(), POLLIN, 0}, {data.descriptor(), POLLIN, 0}}};
    poll(waiting.data(), waiting.size(), deadline.remaining_milliseconds());
    data.take_ended_steps();
  }
  return std::nullopt;
}

class ServerDutiesWithFiles : public ::testing::Test {
 protected:
  ServerDutiesWithFiles() {
    options_.nonce = JobShape().nonce;
    options_.snapshot_dir = ::testing::TempDir() + "server_duties_test." + std::to_string(getpid());
    std::filesystem::create_directories(options_.snapshot_dir);
  }
  ~ServerDutiesWithFiles() override { std::filesystem::remove_all(options_.snapshot_dir); }

  ServerDuties start() {
    return {options_, data_, [](const std::string&) {}};
  }
  void declare(ServerDuties& duties, std::uint32_t incarnation, const JobShape& shape = {}) {
    duties.set_save_job([](std::uint64_t snapshot) { return std::vector{std::byte(snapshot)}; });
    wire::WelcomeT welcome;
    welcome.incarnation = incarnation;
    duties.on_message(wire::make_message(std::move(welcome)));
    wire::DeclaredT declared;
    declared.declaration = std::make_unique<wire::DeclarationT>(declaration_of(shape));
    duties.on_message(wire::make_message(std::move(declared)));
    ASSERT_TRUE(reply<wire::DeclaredT>(duties, data_));
  }
  // Freezes the shard and makes this snapshot, which stays published. Returns whether the server
  // could write it.
  bool copy(ServerDuties& duties, wire::SnapshotT snapshot) {
    wire::FreezeT freeze;
    freeze.snapshot = snapshot.snapshot;
    duties.on_message(wire::make_message(freeze));
    EXPECT_TRUE(reply<wire::FrozenT>(duties, data_));
    duties.on_message(wire::make_message(std::move(snapshot)));
    const std::optional<wire::SnapshotDoneT> done = reply<wire::SnapshotDoneT>(duties, data_);
    EXPECT_TRUE(done);
    return done && !done->not_written;
  }
  // Makes a snapshot that is written to a file, and releases it. Returns whether the server could
  // write the file.
  bool write_snapshot(ServerDuties& duties, std::uint64_t number, bool is_void) {
    wire::SnapshotT snapshot;
    snapshot.snapshot = number;
    snapshot.to_file = true;
    const bool is_written = copy(duties, std::move(snapshot));
    wire::ReleaseT release;
    release.snapshot = number;
    release.is_void = is_void;
    duties.on_message(wire::make_message(release));
    return is_written;
  }
  // Makes a snapshot that is not written to a file, and leaves it published.
  void publish_snapshot(ServerDuties& duties, std::uint64_t number, bool with_slots) {
    wire::SnapshotT snapshot;
    snapshot.snapshot = number;
    snapshot.with_slots = with_slots;
    copy(duties, std::move(snapshot));
  }
  void damage_values(std::uint64_t snapshot) const {
    std::fstream file(options_.snapshot_dir / ("shard-0-" + std::to_string(snapshot) + ".snapshot"),
                      std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(-20, std::ios::end);  // a place before the 8-byte checksum
    file.write("\x7f\x7f\x7f\x7f", 4);
  }
  std::optional<wire::RollBackT> roll_back(ServerDuties& duties, std::uint64_t snapshot) {
    wire::RollBackT back;
    back.snapshot = snapshot;
    duties.on_message(wire::make_message(back));
    return reply<wire::RollBackT>(duties, data_);
  }

  ServerOptions options_;
  DataService data_{{.record = {}}};
};

TEST_F(ServerDutiesWithFiles, RemoveFilesOfVoidSnapshots) {
  ServerDuties duties = start();
  declare(duties, 1);
  write_snapshot(duties, 1, false);
  write_snapshot(duties, 2, false);
  write_snapshot(duties, 3, true);
  EXPECT_EQ(duties.snapshots(), (Snapshots{1, 2}));
  ASSERT_TRUE(roll_back(duties, 1));
  EXPECT_EQ(duties.snapshots(), (Snapshots{1}));
}

TEST_F(ServerDutiesWithFiles, GoOnWithoutASnapshotThatCannotBeWritten) {
  ServerDuties duties = start();
  declare(duties, 1);
  EXPECT_TRUE(write_snapshot(duties, 1, false));
  // A folder under the name of the temporary file is in its way, as a full disk would be.
  const std::filesystem::path in_the_way =
      options_.snapshot_dir / ("shard-0-2.snapshot.tmp" + std::to_string(getpid()));
  std::filesystem::create_directory(in_the_way);
  ::testing::internal::CaptureStderr();
  EXPECT_FALSE(write_snapshot(duties, 2, true));
  const std::string logged = ::testing::internal::GetCapturedStderr();
  EXPECT_TRUE(contains(logged, "snapshot 2 was not written: write "));
  EXPECT_FALSE(duties.failure());
  EXPECT_EQ(duties.snapshots(), (Snapshots{1}));
  std::filesystem::remove(in_the_way);
  EXPECT_TRUE(write_snapshot(duties, 3, false));
  EXPECT_EQ(duties.snapshots(), (Snapshots{1, 3}));
}

TEST_F(ServerDutiesWithFiles, WriteIntoARemovedFolderOnceItIsLockedAgain) {
  options_.renew_snapshot_dir = [this] {
    std::filesystem::create_directories(options_.snapshot_dir);
  };
  ServerDuties duties = start();
  declare(duties, 1);
  EXPECT_TRUE(write_snapshot(duties, 1, false));
  std::filesystem::remove_all(options_.snapshot_dir);
  EXPECT_TRUE(write_snapshot(duties, 2, false));
  EXPECT_EQ(duties.snapshots(), (Snapshots{2}));
}

TEST_F(ServerDutiesWithFiles, LeaveAFolderAloneThatAnotherJobHasTaken) {
  bool is_lost = false;
  options_.renew_snapshot_dir = [&] {
    if (is_lost) throw UsageError("another run is using this folder");
  };
  ServerDuties duties = start();
  declare(duties, 1);
  EXPECT_TRUE(write_snapshot(duties, 1, false));
  is_lost = true;
  const auto theirs = options_.snapshot_dir / "shard-0-2.snapshot";
  std::ofstream(theirs) << "of another job";
  ::testing::internal::CaptureStderr();
  EXPECT_FALSE(write_snapshot(duties, 2, true));
  const std::string logged = ::testing::internal::GetCapturedStderr();
  EXPECT_TRUE(contains(logged,
                       "snapshot 2 was not written: another run is using this folder; no older "
                       "snapshot is left"));
  wire::FinishedT finished;
  duties.on_message(wire::make_message(std::move(finished)));
  EXPECT_TRUE(std::filesystem::exists(theirs));
  EXPECT_TRUE(std::filesystem::exists(options_.snapshot_dir / "shard-0-1.snapshot"));
}

TEST_F(ServerDutiesWithFiles, ReportADamagedFileAndKeepTheOthers) {
  {
    ServerDuties before = start();
    declare(before, 1);
    for (std::uint64_t snapshot = 1; snapshot <= 3; ++snapshot)
      write_snapshot(before, snapshot, false);
  }
  damage_values(1);
  damage_values(3);
  ServerDuties duties = start();
  EXPECT_EQ(duties.job_snapshots().size(), 3U) << "values are not looked at before they are wanted";
  declare(duties, 2);
  const std::optional<wire::RollBackT> damaged = roll_back(duties, 3);
  ASSERT_TRUE(damaged);
  EXPECT_TRUE(damaged->lost);
  EXPECT_EQ(damaged->snapshot, 3U);
  EXPECT_FALSE(duties.failure());
  EXPECT_EQ(duties.snapshots(), (Snapshots{1, 2}));
  const std::optional<wire::RollBackT> sound = roll_back(duties, 2);
  ASSERT_TRUE(sound);
  EXPECT_FALSE(sound->lost);
}

// The file is read while other messages arrive, such as the Welcome of a restarted server 0.
TEST_F(ServerDutiesWithFiles, AnswerAnOrderToGoBackWithItsIncarnation) {
  ServerDuties duties = start();
  declare(duties, 1);
  write_snapshot(duties, 1, false);
  wire::RollBackT back;
  back.snapshot = 1;
  back.incarnation = 2;
  duties.on_message(wire::make_message(back));
  wire::WelcomeT welcome;
  welcome.incarnation = 65536;
  duties.on_message(wire::make_message(std::move(welcome)));
  const auto answer = reply<wire::RollBackT>(duties, data_);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->incarnation, 2U);
}

TEST_F(ServerDutiesWithFiles, CountTheStepsThatARollBackTakesBack) {
  std::string notes;
  ServerDuties duties(options_, data_, [&](const std::string& line) { notes += line + "\n"; });
  declare(duties, 1);
  write_snapshot(duties, 1, false);
  for (const int steps : {-1, 0, 1, 2}) {
    for (const bool is_redone : {true, false}) {
      wire::RollBackT back;
      back.snapshot = 1;
      back.steps = steps;
      back.redone = is_redone;
      duties.on_message(wire::make_message(back));
      ASSERT_TRUE(reply<wire::RollBackT>(duties, data_));
    }
  }
  const std::string none = "rolled back to snapshot 1\n";
  EXPECT_EQ(notes,
            none + none + none + none +
                "rolled back to snapshot 1: 1 step that ended after it is done again\n"
                "rolled back to snapshot 1: the updates of 1 step that was acknowledged after "
                "it are lost here\n"
                "rolled back to snapshot 1: 2 steps that ended after it are done again\n"
                "rolled back to snapshot 1: the updates of 2 steps that were acknowledged "
                "after it are lost here\n");
}

// An evaluation reads values alone. Under Adam the slots are two thirds of what the server holds.
TEST_F(ServerDutiesWithFiles, CopySlotsOnlyIntoASnapshotThatWantsThem) {
  const JobShape shape{.optimizer = "adam"};
  ServerDuties duties = start();
  declare(duties, 1, shape);
  wire::Context context;
  WorkerConnection worker(context, data_.port(), /*nonce=*/"");
  worker.send(hello_of(0, 1));
  worker.receive<wire::DataWelcomeT>();
  // The data thread publishes a snapshot between two messages, so at the latest before the second.
  const auto await_publication = [&] {
    for (int i = 0; i < 2; ++i) {
      worker.send(wire::ProbeT{});
      worker.receive<wire::ProbeAnswerT>();
    }
  };
  wire::ReadSnapshotT read;
  read.snapshot = 1;
  publish_snapshot(duties, 1, false);
  await_publication();
  read.with_slots = true;
  worker.send(read);
  read.with_slots = false;
  worker.send(read);
  EXPECT_FALSE(worker.receive<wire::SnapshotValuesT>(1).with_slots) << "the first one is dropped";
  publish_snapshot(duties, 2, true);
  await_publication();
  read.snapshot = 2;
  read.with_slots = true;
  worker.send(read);
  EXPECT_TRUE(worker.receive<wire::SnapshotValuesT>(3).with_slots);
  EXPECT_EQ(data_.unfit_messages(), 1);
}

class StartCount : public ::testing::Test {
 protected:
  StartCount() { std::filesystem::create_directories(dir_); }
  ~StartCount() override { std::filesystem::remove_all(dir_); }

  const std::filesystem::path dir_ =
      ::testing::TempDir() + "start_count_test." + std::to_string(getpid());
};

TEST_F(StartCount, GrowsForAnyNonce) {
  for (const std::string nonce : {"job", "my job", " my  job ", "my\tjob", "7"}) {
    EXPECT_EQ(count_starts(dir_, nonce), 0) << nonce;
    EXPECT_EQ(count_starts(dir_, nonce), 1) << nonce;
    EXPECT_EQ(count_starts(dir_, nonce), 2) << nonce;
  }
}

TEST_F(StartCount, RestartsWithAnotherJobAndAfterTheEndOfAJob) {
  EXPECT_EQ(count_starts(dir_, "my job"), 0);
  EXPECT_EQ(count_starts(dir_, "my other job"), 0);
  EXPECT_EQ(count_starts(dir_, "my"), 0) << "the beginning of another's";
  EXPECT_EQ(count_starts(dir_, "my"), 1);
  reset_start_count(dir_);
  EXPECT_EQ(count_starts(dir_, "my"), 0);
}

TEST_F(StartCount, RestartsAfterAnUnreadableFile) {
  std::ofstream(dir_ / "server-0-starts") << "a job";
  EXPECT_EQ(count_starts(dir_, "job"), 0);
  EXPECT_EQ(count_starts(dir_, "job"), 1);
}

}  // namespace
}  // namespace syncopate::ps::testing
