// The report that each task sends to the first task, and the diagnosis of the job from the reports
// of all its tasks.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "models/base/enum_names.h"
#include "strategies/cluster/membership.h"

namespace syncopate {

struct TaskReport {
  std::string name;     // name of the task, such as "worker 1"
  std::string host;     // the host name of the task's machine
  std::string boot_id;  // identifies the running kernel; equal for tasks on one machine
  std::string program;  // a hash of the program's file, in hexadecimal
  std::string version;
  std::map<std::string, std::string> libraries;  // the versions of the loaded libraries, by name
  std::string isa;
  std::vector<int> cpus;          // the CPUs that the task may use
  double cpu_quota = 0.0;         // the CPU quota of the task's cgroup, in CPUs; 0: no quota
  int threads = 1;                // the number of threads that the task would compute with
  bool computes = true;           // false for a server
  std::vector<std::string> gpus;  // the bus addresses of the GPUs on which the task would train
  double clock_seconds = 0.0;     // the system clock in seconds, read after all tasks had met
  std::int64_t shm_free_bytes = 0;
  std::int64_t open_files = 0;         // the limit on open files
  std::int64_t open_files_needed = 0;  // the number of files that the task would open
  std::vector<Agreement> agreements;   // what workers compare when they meet; empty for servers
  std::vector<std::string> proxies;    // the names of proxy variables that are set
  // InfiniBand and RoCE ports, such as "mlx5_0 port 1: RoCE, ACTIVE, 100 Gb/sec, GID 3 for RoCE
  // v2".
  std::vector<std::string> rdma_ports;
  std::vector<std::string> nccl;      // NCCL's variables, as NAME=VALUE
  std::string device_problem;         // "" if all devices of the task's replicas exist
  std::string data;                   // the sizes of the data and hashes of a few samples, as text
  std::string data_problem;           // "" if the data can be read
  std::vector<std::string> refusals;  // the messages of errors with which train would end
  std::string folder_problem;         // "" if files can be created in the checkpoint folder
  // True if the checkpoint folder does not exist, so that train would create it.
  bool folder_is_missing = false;
  // True if this task sees the file that the first task created in the checkpoint folder.
  bool sees_chiefs_file = true;
};

// These functions convert a task's report to JSON and back. Decoding throws PeerError if the text
// is not a report.
std::string encode(const TaskReport& report);
TaskReport decode_task_report(const std::string& text);

struct Finding {
  enum class Kind : std::uint8_t { kError, kWarning, kNote, kGood };
  Kind kind = Kind::kGood;
  std::string what;  // subject of the finding, such as "clocks"
  std::string line;  // the finding: what was found, where, and what to try
};
constexpr auto named_values(Finding::Kind /*type*/) {
  return std::array{Named{"ERROR", Finding::Kind::kError},
                    Named{"warning", Finding::Kind::kWarning}, Named{"note", Finding::Kind::kNote},
                    Named{"ok", Finding::Kind::kGood}};
}

// Formats the findings as lines for the user, in the order errors, warnings, notes, good findings.
// Each line begins with the kind of the finding.
std::string describe(std::vector<Finding> findings);
bool has_errors(const std::vector<Finding>& findings);

// The job that doctor checks, with the options that `train` would use.
struct JobUnderTest {
  std::string strategy;
  std::string collective;
  std::string devices = "cpu";
  // The number of tasks of the job. If there are fewer reports, some tasks did not come to the
  // rendezvous.
  int tasks = 1;
  int replicas = 1;                // the number of replicas that take part in one update
  std::int64_t global_batch = 0;   // 0: each replica has its own batch
  bool shares_devices = false;     // true if the user passed --share-devices
  std::string checkpoint_dir;      // "": no checkpoints are written
  std::vector<std::string> notes;  // why some descriptions of the cluster were ignored
};

std::vector<Finding> diagnose(const JobUnderTest& job, const std::vector<TaskReport>& tasks);

}  // namespace syncopate
