// A cluster as text: for `syncopate cluster`, and for programs that read TF_CONFIG.
#pragma once

#include <cstdint>
#include <string>

#include "strategies/cluster/cluster_spec.h"

namespace syncopate {

// One JSON object.
std::string to_json(const ClusterSpec& spec);

// The TF_CONFIG of this task: {"cluster": ..., "task": ...}, on one line. Ports count up from
// port_base on each node, by local rank; 0: from the port that the source has. Workers and servers
// only: worker 0 is the chief. Throws UsageError where the source does not say where the others
// run.
std::string to_tf_config(const ClusterSpec& spec, int port_base);

}  // namespace syncopate
