// One clock for all lines of a run. A process that trains counts its seconds from when it began:
// one that was started again, or joined later, counts from 0 once more. Used by run_result.cc.
#pragma once

#include <cstddef>
#include <map>
#include <vector>

namespace syncopate::bench {

// One thread only.
class JobClock {
 public:
  // In the order of the file: a line of the process that began at `began_at` (wall clock) after so
  // many seconds of its training.
  void add(double began_at, double seconds);
  // Training stood still for an evaluation that took so long.
  void add_evaluation(double began_at, double seconds);
  void set_in_step(double began_at, bool in_step);

  // Once all are added: what must be added to that process's seconds to have those of the job.
  // has_kills: somebody was killed on purpose, so the time until all went on is the job's, as are
  // the steps that were lost; else nobody trained meanwhile (a job that was stopped and resumed),
  // and the job's seconds go on where they were.
  std::map<double, double> offsets(bool has_kills) const;

 private:
  struct Process {
    double began_at = 0.0;
    std::size_t first_line = 0;
    std::size_t last_line = 0;
    double seconds = 0.0;             // the most it said
    double evaluation_seconds = 0.0;  // in which it did not train
    bool in_step = false;
  };

  Process& process(double began_at);

  std::vector<Process> processes_;  // as they appear
  std::size_t lines_ = 0;
};

}  // namespace syncopate::bench
