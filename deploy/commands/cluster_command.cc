// `syncopate cluster`: who this task would be.
#include <ostream>

#include "deploy/commands/commands.h"
#include "strategies/cluster/cluster_spec.h"

namespace syncopate {

int run_cluster(const ClusterOptions& options, std::ostream& out) {
  out << (options.as_tf_config ? to_tf_config(options.cluster, options.port_base)
                               : to_json(options.cluster))
      << std::endl;
  return 0;
}

}  // namespace syncopate
