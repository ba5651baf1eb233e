#include "worker/run/run_folder.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "models/base/errors.h"
#include "models/base/file_descriptor.h"
#include "models/base/log.h"

namespace syncopate {

namespace {

// NFS gives a host that went down 90 s by default before others may have its locks.
constexpr std::chrono::seconds kLease(120);

// What the tasks of a job know alike, and those of another one that could run at the same time do
// not. Not the host where they meet: each may call it by another name.
std::string job_of(const ClusterSpec& cluster) {
  if (cluster.num_servers == 0) return "";
  std::string job = cluster.nonce;
  std::ranges::replace(job, '\n', ' ');
  job += " at port " +
         std::to_string(cluster.rendezvous.endpoint ? cluster.rendezvous.endpoint->port : 0);
  // Listed, they are the same for all tasks; without a nonce nothing else is the job's own.
  if (cluster.nonce.empty()) {
    for (const Endpoint& server : cluster.servers) job += ", " + to_string(server);
  }
  return job;
}

FolderLock take(const std::filesystem::path& folder, const ClusterSpec& cluster,
                std::chrono::milliseconds patience) {
  return FolderLock(folder,
                    {.flag = "--checkpoint-dir",
                     .user = "run",
                     .job = job_of(cluster),
                     .patience = patience,
                     .patience_with_another_host = kLease,
                     .on_waiting = [](const std::string& line) { log(LogLevel::kWarning, line); }});
}

}  // namespace

std::optional<std::string> run_folder_refusal(const std::filesystem::path& folder) {
  return FolderLock::refusal(folder, {.flag = "--checkpoint-dir", .user = "run"});
}

FolderLock take_run_folder(const std::filesystem::path& folder, const ClusterSpec& cluster,
                           std::chrono::milliseconds patience) {
  make_checkpoint_folder(folder);
  return take(folder, cluster, patience);
}

std::optional<FolderLock> join_run_folder(const std::filesystem::path& folder,
                                          const ClusterSpec& cluster) {
  constexpr std::chrono::seconds kPatience(10);
  if (folder.empty() || access(folder.c_str(), W_OK | X_OK) != 0) return std::nullopt;
  return take(folder, cluster, kPatience);
}

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
