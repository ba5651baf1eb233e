#include "bench/harness/scratch_folder.h"

#include <cerrno>
#include <cstdlib>
#include <string>
#include <system_error>

#include "models/base/errors.h"

namespace syncopate::bench {

ScratchFolder::ScratchFolder() {
  std::error_code ignored;
  std::filesystem::path parent = std::filesystem::temp_directory_path(ignored);
  if (parent.empty()) parent = "/tmp";
  std::string name = (parent / "syncopate-bench-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) {
    throw FileError(describe_errno("make the temporary folder", name, errno));
  }
  path_ = name;
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace syncopate::bench
