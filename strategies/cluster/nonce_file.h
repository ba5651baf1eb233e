// Shares a nonce between the tasks of a job if the launcher gives none, as with a bare `srun`. The
// task that hosts the rendezvous draws a random nonce and writes it to a file that only its user
// can read.
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>

#include "strategies/cluster/cluster_spec.h"

namespace syncopate {

// The file with the nonce; removed when this object is destroyed.
class NonceFile {
 public:
  // Draws a nonce and writes it to the file. Throws FileError.
  explicit NonceFile(std::filesystem::path path);
  NonceFile(const NonceFile&) = delete;
  NonceFile& operator=(const NonceFile&) = delete;
  ~NonceFile();

  const std::string& nonce() const noexcept { return nonce_; }

 private:
  const std::filesystem::path path_;
  const std::string nonce_;
};

// Sets spec.nonce if it is empty and spec.nonce_file is not. On the task that hosts the rendezvous,
// writes the file; this task must call the function before it listens. On the other tasks, waits
// for the file and reads it. Returns the written file, which must be kept until the tasks have met;
// null on the other tasks. If the job has no secret nonce, the task that hosts the rendezvous logs
// a warning of one line. Throws FileError, also if the file does not appear within `timeout`.
[[nodiscard]] std::unique_ptr<NonceFile> share_nonce(ClusterSpec& spec,
                                                     std::chrono::milliseconds timeout);

}  // namespace syncopate
