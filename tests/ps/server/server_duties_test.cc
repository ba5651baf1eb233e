#include "ps/server/server_duties.h"

#include <gtest/gtest.h>

#include <string>

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

}  // namespace
}  // namespace syncopate::ps::testing
