// Converts the seconds of all processes of a job to one clock. Each process counts seconds from its
// own start, so a process that was restarted or joined later begins at 0. Used by run_result.cc.
#pragma once

#include <cstddef>
#include <map>
#include <vector>

namespace syncopate::bench {

// The clock of one job. One thread only.
class JobClock {
 public:
  // Adds a line of the metrics. began_at: when the process that wrote the line started, by the wall
  // clock; this value identifies the process. seconds: the time from that start to the line. Lines
  // are added in the order of the file.
  void add(double began_at, double seconds);
  // Adds an evaluation that took `seconds`, during which the process did not train. began_at: see
  // add().
  void add_evaluation(double began_at, double seconds);
  void set_synchronous(double began_at, bool is_synchronous);

  // Returns, for each process, the offset that converts seconds of the process to seconds of the
  // job by addition. The keys are the began_at of the processes. Called after all lines have been
  // added. has_kills: whether workers were killed on purpose. If they were, the job's seconds
  // include the time until all workers continue and the time of lost steps. Otherwise a gap between
  // processes means that the job was stopped and resumed later, and the job's seconds do not
  // include the gap.
  std::map<double, double> offsets(bool has_kills) const;

 private:
  struct Process {
    double began_at = 0.0;
    std::size_t first_line = 0;
    std::size_t last_line = 0;
    double seconds = 0.0;             // the largest `seconds` of the process's lines
    double evaluation_seconds = 0.0;  // the total time of its evaluations
    bool is_synchronous = false;
  };

  Process& process(double began_at);

  std::vector<Process> processes_;  // processes in the order of their first lines
  std::size_t lines_ = 0;
};

}  // namespace syncopate::bench
