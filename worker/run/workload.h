// The data and the network of a run, as functions that every task calls once. In `syncopate train`
// the functions open what --model and --data name; a program passes its own functions
// (deploy/program.h).
#pragma once

#include <functional>

#include "models/graph/graph.h"
#include "worker/input/dataset.h"

namespace syncopate {

struct Workload {
  // Opens the data. Every task must get the same samples; the tasks compare fingerprints of some of
  // them. A program's own function must ignore DataOptions::split, because the caller of the
  // function applies this option. For a mistake of the user the function throws UsageError.
  std::function<DataSplits(const DataOptions&)> open_data;
  // Makes the network for the data. Every task must make the same network; the tasks compare its
  // hash.
  std::function<Graph(const DataSplits&)> make_network;
};

}  // namespace syncopate
