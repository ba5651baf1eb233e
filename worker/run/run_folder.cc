#include "worker/run/run_folder.h"

#include <unistd.h>

#include <algorithm>

#include "models/base/log.h"
#include "worker/run/output_paths.h"

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

}  // namespace syncopate
