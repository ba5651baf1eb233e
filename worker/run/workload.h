// What a run trains: its data and its network, as functions that every task calls once. `syncopate
// train` has those that --model and --data name; a program gives its own (deploy/program.h).
#pragma once

#include <functional>

#include "models/graph/graph.h"
#include "worker/input/dataset.h"

namespace syncopate {

struct Workload {
  // Opens the data. Every task must get the same samples: tasks compare fingerprints of some. A
  // program leaves DataOptions::split to its caller, and reports a mistake of the user as
  // UsageError.
  std::function<DataSplits(const DataOptions&)> open_data;
  // Makes the network for these data. Every task must make the same one: tasks compare its hash.
  std::function<Graph(const DataSplits&)> make_network;
};

}  // namespace syncopate
