// --checkpoint-dir as one run's own: taken before anything in it is read, and held until the
// process ends. Of a job with servers every task that may write there holds it together with the
// others, so that it stays taken while any of them is killed and started again.
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>

#include "strategies/cluster/cluster_spec.h"
#include "worker/checkpoint/folder_lock.h"

namespace syncopate {

// Makes the folder where there is none. patience: with a run that is ending, as one that went back
// into a queue may be; the log says so. Throws UsageError naming the run that has it; FileError.
FolderLock take_run_folder(const std::filesystem::path& folder, const ClusterSpec& cluster,
                           std::chrono::milliseconds patience = std::chrono::seconds(10));

// What a run would be refused with now; none: nobody is at work there.
std::optional<std::string> run_folder_refusal(const std::filesystem::path& folder);

// As take_run_folder for a worker that may have to write there later; none where it cannot.
std::optional<FolderLock> join_run_folder(const std::filesystem::path& folder,
                                          const ClusterSpec& cluster);

// What a run writes later, tried when it starts: a mistake is better known now than after an epoch.

// --checkpoint-dir: makes the folder where there is none, and it takes files. Throws FileError.
void make_checkpoint_folder(const std::filesystem::path& folder);

// --record: `file` can be written; one that is there stays as it is. Throws FileError.
void try_record(const std::filesystem::path& file);

}  // namespace syncopate
