#include "bench/harness/peer_script.h"

namespace syncopate::bench {

namespace fs = std::filesystem;

fs::path peer_script(std::string_view file) {
  const fs::path prefix = fs::read_symlink("/proc/self/exe").parent_path().parent_path();
  const fs::path installed = prefix / "share/syncopate/bench/peers" / file;
  return fs::exists(installed) ? installed : fs::path(SYNCOPATE_BENCH_DIR) / "peers" / file;
}

}  // namespace syncopate::bench
