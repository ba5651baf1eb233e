#include "worker/run/run_folder.h"

#include <fmt/format.h>

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "models/base/errors.h"
#include "models/base/file_descriptor.h"
#include "models/base/log.h"
#include "models/base/secret.h"

namespace syncopate {

namespace {

// The wait for a lock: NFS keeps the locks of a host that went down for 90 s by default.
constexpr std::chrono::seconds kLease(120);

// Returns a line that all tasks of a job share and no other job has. The host of the rendezvous is
// left out, because tasks may call it by different names.
std::string job_of(const ClusterSpec& cluster) {
  if (cluster.num_servers == 0) return "";
  std::string job =
      fmt::format("{} at port {}", name_of_nonce(cluster.nonce),
                  cluster.rendezvous.endpoint ? cluster.rendezvous.endpoint->port : 0);
  // Without a nonce only the list of servers identifies the job; all tasks have the same list.
  if (cluster.nonce.empty()) {
    for (const Endpoint& server : cluster.servers) job += ", " + to_string(server);
  }
  return job;
}

FolderLock take(const std::filesystem::path& folder, const ClusterSpec& cluster,
                std::chrono::milliseconds timeout) {
  return FolderLock(folder,
                    {.flag = "--checkpoint-dir",
                     .user = "run",
                     .job = job_of(cluster),
                     .timeout = timeout,
                     .timeout_for_another_host = kLease,
                     .on_waiting = [](const std::string& line) { log(LogLevel::kWarning, line); }});
}

}  // namespace

std::optional<std::string> run_folder_refusal(const std::filesystem::path& folder) {
  return FolderLock::refusal(folder, {.flag = "--checkpoint-dir", .user = "run"});
}

FolderLock take_run_folder(const std::filesystem::path& folder, const ClusterSpec& cluster,
                           std::chrono::milliseconds timeout) {
  make_checkpoint_folder(folder);
  return take(folder, cluster, timeout);
}

std::optional<FolderLock> join_run_folder(const std::filesystem::path& folder,
                                          const ClusterSpec& cluster) {
  constexpr std::chrono::seconds kTimeout(10);
  if (folder.empty() || access(folder.c_str(), W_OK | X_OK) != 0) return std::nullopt;
  return take(folder, cluster, kTimeout);
}

void make_checkpoint_folder(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error || !std::filesystem::is_directory(folder)) {
    throw FileError("--checkpoint-dir " + folder.string() + ": cannot create the folder: " +
                    (error ? error.message() : "a file of that name exists") +
                    "; choose another folder");
  }
  if (access(folder.c_str(), W_OK | X_OK) != 0) {
    throw FileError(describe_errno("write into --checkpoint-dir", folder.string(), errno));
  }
}

void try_record(const std::filesystem::path& file) {
  constexpr mode_t kBeforeUmask = 0666;
  const FileDescriptor opened(
      open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, kBeforeUmask));
  if (!opened) throw FileError(describe_errno("write --record", file.string(), errno));
}

}  // namespace syncopate
