#include "ps/server/server_duties.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <string>

#include "models/base/deadline.h"
#include "tests/ps/served_job.h"

namespace syncopate::ps::testing {
namespace {

TEST(ServerDuties, DoNothingThatTheyWereNotToldEnoughFor) {
  const ServerOptions options;
  DataService data({.record = {}});
  ServerDuties duties(options, data, [](const std::string&) {});
  duties.obey(wire::make_message(wire::DeclaredT()));
  wire::FreezeT freeze;
  freeze.cut = 1;
  duties.obey(wire::make_message(freeze));
  wire::CutT cut;
  cut.cut = 1;
  duties.obey(wire::make_message(std::move(cut)));
  EXPECT_TRUE(duties.take_replies().empty());
}

// The next reply, if it is one of these.
template <typename BodyT>
bool replies(ServerDuties& duties, DataService& data) {
  const Deadline deadline = Deadline::after(std::chrono::seconds(10));
  while (!deadline.passed()) {
    const std::vector<wire::MessageT> said = duties.take_replies();
    if (!said.empty()) return said[0].body.type == wire::BodyUnionTraits<BodyT>::enum_value;
    std::array<pollfd, 2> waiting{
        {{duties.descriptor(), POLLIN, 0}, {data.descriptor(), POLLIN, 0}}};
    poll(waiting.data(), waiting.size(), deadline.remaining_milliseconds());
    data.take_news();
  }
  return false;
}

TEST(ServerDuties, KeepNoFilesOfCutsThatWereGivenUpOrAreOfAPastThatIsVoid) {
  ServerOptions options;
  options.snapshot_dir = ::testing::TempDir() + "server_duties_test." + std::to_string(getpid());
  std::filesystem::create_directories(options.snapshot_dir);
  DataService data({.record = {}});
  {
    ServerDuties duties(options, data, [](const std::string&) {});
    wire::DeclaredT declared;
    declared.declaration = std::make_unique<wire::DeclarationT>(declaration_of({}));
    duties.obey(wire::make_message(std::move(declared)));
    ASSERT_TRUE(replies<wire::DeclaredT>(duties, data));
    const auto make_cut = [&](std::uint64_t number, bool is_void) {
      wire::FreezeT freeze;
      freeze.cut = number;
      duties.obey(wire::make_message(freeze));
      EXPECT_TRUE(replies<wire::FrozenT>(duties, data));
      wire::CutT cut;
      cut.cut = number;
      cut.to_file = true;
      duties.obey(wire::make_message(std::move(cut)));
      EXPECT_TRUE(replies<wire::CutDoneT>(duties, data));
      wire::ReleaseT release;
      release.cut = number;
      release.is_void = is_void;
      duties.obey(wire::make_message(release));
    };
    make_cut(1, false);
    make_cut(2, false);
    make_cut(3, true);
    EXPECT_EQ(duties.snapshots(), (std::vector<std::uint64_t>{1, 2}));
    wire::RollBackT back;
    back.cut = 1;
    duties.obey(wire::make_message(back));
    ASSERT_TRUE(replies<wire::RollBackT>(duties, data));
    EXPECT_EQ(duties.snapshots(), (std::vector<std::uint64_t>{1}));
  }
  std::filesystem::remove_all(options.snapshot_dir);
}

}  // namespace
}  // namespace syncopate::ps::testing
