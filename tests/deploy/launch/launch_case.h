// Runs jobs whose roles are shell scripts in place of training processes, and collects the output
// of the launch.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "deploy/launch/launched_job.h"
#include "tests/support/contains.h"
#include "tests/support/temporary_folder.h"

namespace syncopate::test {

struct Launched {
  int exit_code = -1;
  std::string out;
  std::string err;
};

// A LaunchCase runs a job in a folder of its own, which the destructor removes. Only one thread may
// use a LaunchCase.
class LaunchCase {
 public:
  // `timeout`: how long the launch waits for the other roles after a failure.
  explicit LaunchCase(std::chrono::milliseconds timeout = std::chrono::milliseconds(500));

  // The launch rules have short delays, so that a test that provokes a failure is quick.
  LaunchRules rules{.first_back_off = std::chrono::milliseconds(1),
                    .longest_back_off = std::chrono::milliseconds(1),
                    .grace = std::chrono::milliseconds(500)};

  // The launch calls on_err with each line that the launcher or a role writes to stderr, as soon as
  // the line arrives.
  std::function<void(const std::string& lines)> on_err;

  // Returns a role that runs a script, in a job with workers and servers; its name is like "worker
  // 0".
  RoleCommand role(Role role, int index, const std::string& script) const;

  // Runs each script as a role, named "role 0", "role 1". The scripts see the folder as $FOLDER.
  // $FOLDER/pipe is a named pipe: opening it for writing waits for a reader, and opening it for
  // reading waits for a writer.
  Launched run(const std::vector<std::string>& scripts) const;
  // Runs the scripts of the workers and those of the servers as one job.
  Launched run_job(const std::vector<std::string>& workers,
                   const std::vector<std::string>& servers) const;
  // Runs a plan that the test has made, in the same way as run().
  Launched run_plan(const LaunchPlan& plan) const;

  Environment::Variables environment() const;
  const std::filesystem::path& folder() const noexcept { return folder_.path(); }

 private:
  const TemporaryFolder folder_;
};

// Returns the roles of a plan.
template <typename... Roles>
std::vector<RoleCommand> commands_of(Roles... roles) {
  std::vector<RoleCommand> commands;
  (commands.push_back(std::move(roles)), ...);
  return commands;
}

std::ptrdiff_t count_lines(const std::string& text);

// Shell text that waits until the process with the number in $FOLDER/pid is stopped.
inline const std::string kUntilItIsStopped =
    "until grep -qs '^State:.T' /proc/$(cat $FOLDER/pid 2>/dev/null)/status; do :; done; ";

// Returns shell text that waits for a signal and leaves no process behind when the shell is killed.
std::string wait_for_a_signal();

}  // namespace syncopate::test
