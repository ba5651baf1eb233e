// Collects the report of a task: facts about the task and its machine, and the errors that train
// would find before its first step. The same functions that train calls find these errors.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "deploy/cli/command_line.h"
#include "deploy/doctor/diagnosis.h"
#include "models/backend/backend.h"
#include "models/base/environment.h"
#include "strategies/cluster/membership.h"

namespace syncopate {

// Returns the report of this task. Opens the data and runs train's first checks. The report lacks
// the devices, the clock and sees_chiefs_file, because these facts can be determined only together
// with the other tasks. Does not throw. A fact that cannot be determined stays empty, and data that
// cannot be read are reported as a problem.
TaskReport inspect_task(const TrainOptions& options, const Environment& environment);

// Adds the devices of this task's replicas to the report. The devices are divided among the tasks
// in the same way as in train. membership: the tasks that exchange lists of the GPUs that they see;
// every task of the membership must call this function. If `membership` is null, the task reports
// its devices without an exchange. Throws PeerError if the exchange with another task fails.
void inspect_devices(TrainOptions options, Membership* membership, TaskReport& report);

// Describes the InfiniBand and RoCE ports. root: /sys/class/infiniband, or a copy in tests. Source:
// Linux kernel, Documentation/ABI/stable/sysfs-class-infiniband.
std::vector<std::string> rdma_ports(const std::filesystem::path& root);

// Returns the name of a task, such as "worker 1".
std::string task_name(const ClusterSpec& spec);

// Returns the folder if it exists, else its nearest ancestor that exists.
std::filesystem::path nearest_existing_folder(const std::filesystem::path& folder);

// A file that shows other tasks whether they share the checkpoint folder. The file is created
// in the checkpoint folder or, if this folder does not exist yet, in its nearest existing ancestor.
// The destructor removes the file.
class FolderToken {
 public:
  // Creates the file `name`. Creates no file if `folder` is empty or cannot be written.
  FolderToken(const std::filesystem::path& folder, const std::string& name);
  FolderToken(const FolderToken&) = delete;
  FolderToken& operator=(const FolderToken&) = delete;
  ~FolderToken();
  bool has_failed() const noexcept { return is_wanted_ && path_.empty(); }

 private:
  bool is_wanted_ = false;
  std::filesystem::path path_;
};
// Returns whether this task sees the file of a FolderToken that was made with the same folder and
// name. Retries for up to two seconds, since a network file system may show a new file late.
bool sees_token(const std::filesystem::path& folder, const std::string& name);

// Lists the libraries that this program uses for computation and input, with the versions at build
// time and at run time. `syncopate info` prints them, and doctor reports differences between two
// machines.
std::vector<LibraryVersion> library_versions();

}  // namespace syncopate
