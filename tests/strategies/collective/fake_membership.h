// A FakeMembership has two tasks without connections: the test itself answers for the other task.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "strategies/cluster/membership.h"

namespace syncopate {

// The membership of task 0 (host a, pid 1). The other task is task 1 (host b, pid 77), on loopback.
class FakeMembership final : public Membership {
 public:
  // The function `answer` returns the other task's text of every exchange(), given the text of this
  // task.
  explicit FakeMembership(std::function<std::string(const std::string&)> answer,
                          const std::string& own_address = "192.0.2.1")
      : answer_(std::move(answer)),
        members_{{.index = 0, .host = "a", .address = own_address, .pid = 1},
                 {.index = 1, .first_replica = 1, .host = "b", .address = "127.0.0.1", .pid = 77}} {
  }

  int index() const noexcept override { return 0; }
  const std::vector<Member>& members() const noexcept override { return members_; }
  const std::string& nonce() const noexcept override { return nonce_; }
  std::chrono::milliseconds peer_timeout() const noexcept override {
    return std::chrono::seconds(5);
  }
  std::vector<std::string> exchange(const std::string& mine) override {
    return {mine, answer_(mine)};
  }
  // Returns no value for the first `polls_before_verdict` calls, and `verdict` after that.
  std::optional<std::string> failure() const override {
    if (polls_before_verdict-- > 0) return std::nullopt;
    return verdict;
  }
  void on_failure(std::function<void(const std::string&)> /*callback*/) override {}
  void report_step(std::int64_t /*step*/) noexcept override {}
  std::int64_t lowest_step() const noexcept override { return lowest; }
  void leave() override {}
  void fail(std::string_view /*reason*/) noexcept override {}

  std::int64_t lowest = -1;
  std::optional<std::string> verdict;
  mutable int polls_before_verdict = 0;

 private:
  std::function<std::string(const std::string&)> answer_;
  std::vector<Member> members_;
  std::string nonce_ = "a job";
};

}  // namespace syncopate
