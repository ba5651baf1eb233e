// The commands: each takes its options, does its work and returns the exit code. Results go to
// `out`, notes to stderr; what goes wrong is thrown.
#pragma once

#include <iosfwd>

#include "deploy/options.h"

namespace syncopate {

// 0 done; 75 stopped on request after a checkpoint was written; 1 stopped with nothing saved.
int run_train(const TrainOptions& options, std::ostream& out);
int run_evaluate(const EvaluateOptions& options, std::ostream& out);
int run_info(const InfoOptions& options, std::ostream& out);

}  // namespace syncopate
