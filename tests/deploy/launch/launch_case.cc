#include "tests/deploy/launch/launch_case.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <stdexcept>

namespace syncopate::test {

LaunchCase::LaunchCase(std::chrono::milliseconds timeout) {
  rules.timeout = timeout;
  if (mkfifo((folder_ / "pipe").c_str(), 0600) != 0) {
    throw std::runtime_error("test set-up: mkfifo failed");
  }
}

Environment::Variables LaunchCase::environment() const {
  return {{"PATH", "/usr/bin:/bin"}, {"FOLDER", folder_.path().string()}};
}

Launched LaunchCase::run(const std::vector<std::string>& scripts) const {
  return run_plan([&](int) {
    std::vector<RoleCommand> commands;
    commands.reserve(scripts.size());
    for (const std::string& script : scripts) {
      commands.push_back({.name = "role " + std::to_string(commands.size()),
                          .arguments = {"/bin/sh", "-c", script},
                          .environment = environment()});
    }
    return commands;
  });
}

RoleCommand LaunchCase::role(Role role, int index, const std::string& script) const {
  return {.name = std::string(syncopate::name(role)) + " " + std::to_string(index),
          .role = role,
          .arguments = {"/bin/sh", "-c", script},
          .environment = environment()};
}

Launched LaunchCase::run_job(const std::vector<std::string>& workers,
                             const std::vector<std::string>& servers) const {
  return run_plan([&](int) {
    std::vector<RoleCommand> commands;
    const auto add = [&](Role kind, const std::vector<std::string>& scripts) {
      for (std::size_t i = 0; i < scripts.size(); ++i) {
        commands.push_back(role(kind, static_cast<int>(i), scripts[i]));
      }
    };
    add(Role::kServer, servers);
    add(Role::kWorker, workers);
    return commands;
  });
}

Launched LaunchCase::run_plan(const LaunchPlan& plan) const {
  // The alarm ends the test program, and with it the roles, if the launch never returns.
  alarm(60);
  Launched result;
  result.exit_code = launch(plan, rules,
                            {.out = [&](std::string_view lines) { result.out += lines; },
                             .err =
                                 [&](std::string_view lines) {
                                   result.err += lines;
                                   if (on_err) on_err(std::string(lines));
                                 }});
  alarm(0);
  return result;
}

std::ptrdiff_t count_lines(const std::string& text) {
  return std::count(text.begin(), text.end(), '\n');
}

// The shell text of wait_for_a_signal() uses `wait`, because a trapped signal interrupts no other
// command. Its `cat` reads a pipe to which the shell holds the only write end, so `cat` ends with
// the shell.
std::string wait_for_a_signal() {
  return "mkfifo $FOLDER/$$; exec 3<>$FOLDER/$$; cat <$FOLDER/$$ >/dev/null 3>&- & "
         "while :; do wait; done";
}

}  // namespace syncopate::test
