// What is wrong with a job, from what its tasks report. Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "deploy/doctor/task_report.h"

namespace syncopate {

struct Finding {
  enum class Kind : std::uint8_t { kError, kWarning, kNote, kGood };
  Kind kind = Kind::kGood;
  std::string what;  // "clocks"
  std::string line;  // what is so, where, and what to try
};

// In lines for people: errors, warnings, notes, what is well; each with its kind in front.
std::string describe(std::vector<Finding> findings);
bool has_errors(const std::vector<Finding>& findings);

// What would be trained.
struct JobUnderTest {
  std::string strategy;
  std::string collective;
  std::string devices = "cpu";
  int tasks = 1;                   // that there are to be; fewer reports: they could not be met
  int replicas = 1;                // that make one update
  std::int64_t global_batch = 0;   // 0: each replica has its own
  bool shares_devices = false;     // on purpose
  std::string checkpoint_dir;      // "": none
  std::vector<std::string> notes;  // why other sources of the cluster lost
};

std::vector<Finding> judge(const JobUnderTest& job, const std::vector<TaskReport>& tasks);

}  // namespace syncopate
