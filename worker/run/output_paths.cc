#include "worker/run/output_paths.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "models/base/errors.h"
#include "models/base/file_descriptor.h"

namespace syncopate {

void make_checkpoint_folder(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error || !std::filesystem::is_directory(folder)) {
    throw FileError("--checkpoint-dir " + folder.string() + ": cannot create the folder: " +
                    (error ? error.message() : "a file of that name exists"));
  }
  if (access(folder.c_str(), W_OK | X_OK) != 0) {
    throw FileError(describe_errno("write into --checkpoint-dir", folder.string(), errno));
  }
}

void try_record(const std::filesystem::path& file) {
  constexpr mode_t kAnyone = 0666;
  const FileDescriptor opened(
      open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, kAnyone));
  if (!opened) throw FileError(describe_errno("write --record", file.string(), errno));
}

}  // namespace syncopate
