// What a task finds out about itself and its machine.
#pragma once

#include <filesystem>
#include <string>

#include "deploy/cli/command_line.h"
#include "deploy/doctor/task_report.h"
#include "models/base/environment.h"
#include "strategies/cluster/membership.h"

namespace syncopate {

// Fills everything but devices, the clock and sees_chiefs_file, which need the other tasks. Opens
// the data and tries what the run would begin with. Throws nothing: what cannot be found out stays
// empty, and what cannot be read becomes a problem.
TaskReport look_at_task(const TrainOptions& options, const Environment& environment);

// Finds the devices of this task's replicas and divides them as train does. With a membership every
// task calls it. Throws PeerError.
void look_at_devices(TrainOptions options, Membership* membership, TaskReport& report);

// "worker 1"
std::string task_name(const ClusterSpec& spec);

double system_clock_seconds();

// The folder itself, or its nearest ancestor that exists.
std::filesystem::path nearest_existing_folder(const std::filesystem::path& folder);

// A file by which other tasks see whether they share the checkpoint folder, or, before it exists,
// the folder in which it would be created. The destructor removes the file.
class FolderToken {
 public:
  // Creates nothing if `folder` is empty or cannot be written.
  FolderToken(const std::filesystem::path& folder, const std::string& name);
  FolderToken(const FolderToken&) = delete;
  FolderToken& operator=(const FolderToken&) = delete;
  ~FolderToken();
  bool has_failed() const noexcept { return is_wanted_ && path_.empty(); }

 private:
  bool is_wanted_ = false;
  std::filesystem::path path_;
};
// Looks for the file for up to two seconds, since a network file system may show it late.
bool sees_token(const std::filesystem::path& folder, const std::string& name);

}  // namespace syncopate
