// Makes environments of Slurm steps, modelled on recorded environments.
#pragma once

#include <string>
#include <vector>

#include "tests/strategies/cluster/cluster_case.h"

namespace syncopate::test {

// Returns the variables of one task of a step of job 7.
inline Variables step(const std::string& nodes, const std::string& counts, int tasks, int rank,
                      const std::string& node, int local_rank) {
  return {{"SLURM_JOB_ID", "7"},
          {"SLURM_STEP_ID", "0"},
          {"SLURM_PROCID", std::to_string(rank)},
          {"SLURM_LOCALID", std::to_string(local_rank)},
          {"SLURMD_NODENAME", node},
          {"SLURM_STEP_NUM_TASKS", std::to_string(tasks)},
          {"SLURM_STEP_NODELIST", nodes},
          {"SLURM_STEP_TASKS_PER_NODE", counts}};
}

// Returns node and local rank of each task, such as "n1:0 n2:0".
inline std::string text_of(const std::vector<Place>& places) {
  std::string text;
  for (const Place& place : places) {
    text += (text.empty() ? "" : " ") + place.node + ":" + std::to_string(place.local_rank);
  }
  return text;
}

}  // namespace syncopate::test
