// `syncopate cluster`: who this task would be.
#include <ostream>

#include "deploy/commands.h"

namespace syncopate {

int run_cluster(const ClusterOptions& options, std::ostream& out) {
  out << to_json(options.cluster) << std::endl;
  return 0;
}

}  // namespace syncopate
