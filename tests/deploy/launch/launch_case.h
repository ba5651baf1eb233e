// Jobs of shell scripts in the place of training processes, and what a launch of them said.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "deploy/launch/role_group.h"

namespace syncopate::test {

struct Launched {
  int exit_code = -1;
  std::string out;
  std::string err;
};

// A folder of its own, gone with it. One thread only.
class LaunchCase {
 public:
  LaunchCase();
  LaunchCase(const LaunchCase&) = delete;
  LaunchCase& operator=(const LaunchCase&) = delete;
  ~LaunchCase();

  // Short times to wait, so that a test that provokes a failure is quick.
  LaunchRules rules{.first_back_off = std::chrono::milliseconds(1),
                    .longest_back_off = std::chrono::milliseconds(1),
                    .patience = std::chrono::milliseconds(50),
                    .grace = std::chrono::milliseconds(50)};

  // Called with each of the launcher's own lines and what roles write to stderr, as it comes.
  std::function<void(const std::string& lines)> on_err;

  // A script as a role of a job with workers and servers: "worker 0", "server 1".
  RoleCommand role(Role role, int index, const std::string& script) const;

  // Each script is a role: "role 0", "role 1". They see the folder as $FOLDER; $FOLDER/meeting is a
  // named pipe: who opens it for writing waits for who opens it for reading.
  Launched run(const std::vector<std::string>& scripts) const;
  // Scripts of workers and of servers.
  Launched run_job(const std::vector<std::string>& workers,
                   const std::vector<std::string>& servers) const;
  // As `run`, with a plan of the test's own.
  Launched run_plan(const LaunchPlan& plan) const;

  Environment::Variables environment() const;
  const std::filesystem::path& folder() const noexcept { return folder_; }

 private:
  std::filesystem::path folder_;
};

bool contains(const std::string& text, const std::string& part);
std::ptrdiff_t count_lines(const std::string& text);

// Shell text that waits for a signal, and leaves nothing behind when the shell is killed.
std::string wait_for_a_signal();

}  // namespace syncopate::test
