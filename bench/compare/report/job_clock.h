// Converts the seconds of a job's processes to one clock. A process counts its seconds from its own
// start, so one that was restarted or joined later counts from 0 again. Used by run_result.cc.
#pragma once

#include <cstddef>
#include <map>
#include <vector>

namespace syncopate::bench {

// The clock of one job. One thread only.
class JobClock {
 public:
  // Takes a line of the metrics that a process wrote `seconds` after its start at `began_at` (wall
  // clock). Lines come in the order of the file.
  void add(double began_at, double seconds);
  // Takes an evaluation. The process that started at `began_at` did not train during its `seconds`.
  void add_evaluation(double began_at, double seconds);
  void set_synchronous(double began_at, bool is_synchronous);

  // Returns, by `began_at`, the offset that converts the seconds of a process to seconds of the
  // job. Called after all lines were added. With has_kills, workers were killed on purpose, so the
  // time until all continued counts, as do the steps that were lost. Otherwise a gap between
  // processes is a job that was stopped and resumed later, and its seconds continue where they
  // ended.
  std::map<double, double> offsets(bool has_kills) const;

 private:
  struct Process {
    double began_at = 0.0;
    std::size_t first_line = 0;
    std::size_t last_line = 0;
    double seconds = 0.0;             // largest seconds of the process's lines
    double evaluation_seconds = 0.0;  // time of evaluations, without training
    bool is_synchronous = false;
  };

  Process& process(double began_at);

  std::vector<Process> processes_;  // processes in the order of their first lines
  std::size_t lines_ = 0;
};

}  // namespace syncopate::bench
