// What to do when a task is gone, as the end of a line that names it.
#pragma once

#include <string>

namespace syncopate::ps {

// Without checkpoints there is nothing to go on from.
inline std::string resume_advice(bool has_checkpoints) {
  return has_checkpoints ? "; see what it printed, and start the job again with --resume"
                         : "; see what it printed";
}

// What to do with a job that cannot go on by itself.
inline std::string again_advice(bool has_checkpoints) {
  return has_checkpoints ? "; start the job again with --resume" : "; start the job again";
}

}  // namespace syncopate::ps
