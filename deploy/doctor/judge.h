// Finds what is wrong with a job from the reports of its tasks. The functions are pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "deploy/doctor/task_report.h"

namespace syncopate {

struct Finding {
  enum class Kind : std::uint8_t { kError, kWarning, kNote, kGood };
  Kind kind = Kind::kGood;
  std::string what;  // the subject, such as "clocks"
  std::string line;  // what was found, where, and what to try
};

// Formats the findings as lines for people, ordered as errors, warnings, notes and good findings;
// each line begins with its kind.
std::string describe(std::vector<Finding> findings);
bool has_errors(const std::vector<Finding>& findings);

// JobUnderTest describes the job that would be trained.
struct JobUnderTest {
  std::string strategy;
  std::string collective;
  std::string devices = "cpu";
  // The number of tasks expected; with fewer reports the missing tasks could not be met.
  int tasks = 1;
  int replicas = 1;                // the number of replicas that take part in one update
  std::int64_t global_batch = 0;   // 0: each replica has its own batch
  bool shares_devices = false;     // true if the user passed --share-devices
  std::string checkpoint_dir;      // "": no checkpoints are written
  std::vector<std::string> notes;  // why other sources of the cluster were not used
};

std::vector<Finding> judge(const JobUnderTest& job, const std::vector<TaskReport>& tasks);

}  // namespace syncopate
