// Keeps --checkpoint-dir for one run: the lock is taken before anything in the folder is read, and
// held until the process ends. In a job with servers all tasks that may write there hold the lock
// together, so that it stays while one of them is restarted. Also checks at the start that the
// files of a run can be written.
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>

#include "strategies/cluster/cluster_spec.h"
#include "worker/checkpoint/folder_lock.h"

namespace syncopate {

// Creates --checkpoint-dir if necessary and takes its lock. timeout: of waiting for a run that is
// ending, such as one that was put back into a queue; the wait is logged. Throws UsageError naming
// the run that holds the lock; FileError.
FolderLock take_run_folder(const std::filesystem::path& folder, const ClusterSpec& cluster,
                           std::chrono::milliseconds timeout = std::chrono::seconds(10));

// Returns the error that a run with this folder would end with now; nothing if the folder is free.
std::optional<std::string> run_folder_refusal(const std::filesystem::path& folder);

// Takes the lock of the checkpoint folder for a worker that may have to write a checkpoint later;
// returns nothing when the worker cannot write to the folder.
std::optional<FolderLock> join_run_folder(const std::filesystem::path& folder,
                                          const ClusterSpec& cluster);

// Creates --checkpoint-dir if necessary. Throws FileError when it cannot be written.
void make_checkpoint_folder(const std::filesystem::path& folder);

// Checks that the --record file can be written; does not change the file. Throws FileError.
void try_record(const std::filesystem::path& file);

}  // namespace syncopate
