// A task looks at itself and its machine.
#pragma once

#include <filesystem>
#include <string>

#include "deploy/cli/command_line.h"
#include "deploy/doctor/task_report.h"
#include "models/base/environment.h"
#include "strategies/cluster/membership.h"

namespace syncopate {

// Everything but devices, the clock and sees_chiefs_file, which are looked at together. Reads the
// data and what the run would begin with; nothing is thrown: what cannot be found out stays empty,
// and what cannot be read is a problem.
TaskReport look_at_task(const TrainOptions& options, const Environment& environment);

// On which devices this task's replicas would compute, found and dealt out as train does it: with a
// membership every task calls. Throws PeerError.
void look_at_devices(TrainOptions options, Membership* membership, TaskReport& report);

// "worker 1"
std::string task_name(const ClusterSpec& spec);

double system_clock_seconds();

// A file in the checkpoint folder by which others see whether they share it. Gone with this object.
class FolderToken {
 public:
  // Nothing is made where `folder` is empty or cannot be written.
  FolderToken(const std::filesystem::path& folder, const std::string& name);
  FolderToken(const FolderToken&) = delete;
  FolderToken& operator=(const FolderToken&) = delete;
  ~FolderToken();
  bool has_failed() const noexcept { return is_wanted_ && path_.empty(); }

 private:
  bool is_wanted_ = false;
  std::filesystem::path path_;
};
// Looks for it for up to two seconds: a network's file system may show it late.
bool sees_token(const std::filesystem::path& folder, const std::string& name);

}  // namespace syncopate
