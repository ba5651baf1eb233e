// Tests the error with which a task ends its part of a job, and the task that the error names.
#include "worker/run/job_membership.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "models/base/deadline.h"
#include "models/base/errors.h"

namespace syncopate {
namespace {

using std::chrono::milliseconds;

constexpr const char* kWhatFailed = "replica 0 waited 9 s for all to meet; try something else";
constexpr const char* kRankZeroFailed =
    "rank 0 (host a, pid 10) failed: replica 0 waited 9 s for all to meet; try something else";

// A membership of two tasks, of which this is the second.
class TwoTasks final : public Membership {
 public:
  // Makes a membership that reports `verdict` as the cause of a failure from the time `after` on.
  TwoTasks(std::string verdict, milliseconds after)
      : verdict_(std::move(verdict)), is_known_(Deadline::after(after)) {}
  const std::string& last_failure() const { return last_failure_; }

  int index() const noexcept override { return 1; }
  const std::vector<Member>& members() const noexcept override { return members_; }
  const std::string& nonce() const noexcept override { return nonce_; }
  milliseconds peer_timeout() const noexcept override { return milliseconds(5000); }
  std::vector<std::string> exchange(const std::string& mine) override { return {mine}; }
  std::optional<std::string> failure() const override {
    if (verdict_.empty() || !is_known_.passed()) return std::nullopt;
    return verdict_;
  }
  void on_failure(std::function<void(const std::string&)> /*callback*/) override {}
  void report_step(std::int64_t /*step*/) noexcept override {}
  std::int64_t lowest_step() const noexcept override { return -1; }
  void leave() override {}
  void fail(std::string_view reason) noexcept override { last_failure_ = reason; }

 private:
  std::vector<Member> members_{{.index = 0, .host = "a", .pid = 10},
                               {.index = 1, .host = "b", .pid = 11}};
  std::string nonce_;
  std::string verdict_;
  Deadline is_known_;
  std::string last_failure_;
};

// Returns the error with which this task ends.
std::string ends_with(Membership& membership, const std::string& seen) {
  try {
    try {
      throw PeerError(seen);
    } catch (const PeerError& error) {
      end_job(membership, error, /*peer_began=*/true);
    }
  } catch (const PeerError& error) {
    return error.what();
  }
}

TEST(ATaskThatFails, ReportsItsErrorWhenNoOtherTaskDid) {
  TwoTasks tasks("", milliseconds(0));
  EXPECT_EQ(ends_with(tasks, kWhatFailed), kWhatFailed);
  EXPECT_EQ(tasks.last_failure(), kWhatFailed);
}

TEST(ATaskThatFails, ReportsTheVerdictOnAPeer) {
  TwoTasks tasks("rank 0 (host a, pid 10) was lost: it has been silent for 3.5 s", milliseconds(0));
  EXPECT_EQ(ends_with(tasks, "NCCL failed; try something else"),
            "rank 0 (host a, pid 10) was lost: it has been silent for 3.5 s (noticed here as: NCCL "
            "failed; try something else)");
  EXPECT_EQ(tasks.last_failure(), "");
}

// A task that learned of a failure through shared memory waits for the verdict, so that the verdict
// does not name this task.
TEST(ATaskThatRepeatsAFailure, LetsTheFailedTaskReportFirst) {
  TwoTasks tasks(kRankZeroFailed, milliseconds(1300));
  EXPECT_EQ(ends_with(tasks, kRankZeroFailed), kRankZeroFailed);
  EXPECT_EQ(tasks.last_failure(), "");
}

TEST(TheErrorOfATask, DoesNotRepeatTheAdviceOfTheVerdict) {
  TwoTasks tasks(kRankZeroFailed, milliseconds(0));
  EXPECT_EQ(
      ends_with(tasks, "replica 1 waited 9 s for all to meet; try something else"),
      std::string(kRankZeroFailed) + " (noticed here as: replica 1 waited 9 s for all to meet)");
}

}  // namespace
}  // namespace syncopate
