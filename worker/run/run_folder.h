// Reserves --checkpoint-dir for one run with a lock, which is taken before anything in the folder
// is read and held until the process ends. In a job with servers all tasks that may write to the
// folder share the lock, so that the folder stays locked while one task is restarted. The functions
// also check at the start that the files of a run can be written.
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>

#include "strategies/cluster/cluster_spec.h"
#include "worker/checkpoint/folder_lock.h"

namespace syncopate {

// Creates --checkpoint-dir if necessary and takes its lock. timeout: how long to wait for an
// earlier run that is about to end, such as a run that was requeued; the wait is logged. Throws
// UsageError naming the run that holds the lock; also throws FileError.
FolderLock take_run_folder(const std::filesystem::path& folder, const ClusterSpec& cluster,
                           std::chrono::milliseconds timeout = std::chrono::seconds(10));

// Returns the message of the error with which a run with this checkpoint folder would end now;
// nullopt if the folder is free.
std::optional<std::string> run_folder_refusal(const std::filesystem::path& folder);

// Takes the lock of the checkpoint folder for a worker that may have to write a checkpoint later.
// Returns nullopt if the worker cannot write to the folder.
std::optional<FolderLock> join_run_folder(const std::filesystem::path& folder,
                                          const ClusterSpec& cluster);

// Creates --checkpoint-dir if necessary. Throws FileError if the folder cannot be written.
void make_checkpoint_folder(const std::filesystem::path& folder);

// Checks that the --record file can be written; does not change the file. Throws FileError.
void try_record(const std::filesystem::path& file);

}  // namespace syncopate
