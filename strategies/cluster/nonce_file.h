// The nonce of a job if its launcher gives none, as in a bare `srun`: the task that hosts the
// rendezvous draws one and writes it to a file that only its user can read.
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>

#include "strategies/cluster/cluster_spec.h"

namespace syncopate {

// A NonceFile exists as long as this object.
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

// Gives the job a nonce if spec.nonce_file names where its tasks share one: writes the file if this
// task hosts the rendezvous, before it listens, else reads it. Returns the written file, to be kept
// until the tasks have met. A job without a secret nonce gets one line of warning, from the task
// that hosts the rendezvous. Throws FileError, also when the file does not appear within `timeout`.
[[nodiscard]] std::unique_ptr<NonceFile> share_nonce(ClusterSpec& spec,
                                                     std::chrono::milliseconds timeout);

}  // namespace syncopate
