// What one task sees of itself and its machine, as it tells the task that judges.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace syncopate {

struct TaskReport {
  std::string name;     // "worker 1"
  std::string host;     // its own name for its machine
  std::string boot_id;  // the same for tasks under one kernel
  std::string program;  // hash of its file, hexadecimal
  std::string version;
  std::map<std::string, std::string> libraries;  // as loaded
  std::string isa;
  std::vector<int> cpus;          // that it may use
  int threads = 1;                // that it would compute with
  bool computes = true;           // a server does not
  std::vector<std::string> gpus;  // on which it would train, by bus address
  double clock_seconds = 0.0;     // system clock, read when all had met
  std::int64_t shm_free_bytes = 0;
  std::int64_t open_files = 0;        // limit
  std::vector<std::string> proxies;   // names of variables
  std::vector<std::string> roce;      // "mlx5_0 port 1 gid 3: RoCE v2"
  std::string roce_index;             // NCCL_IB_GID_INDEX
  std::string device_problem;         // "": its replicas' devices are there
  std::string data;                   // sizes and a few samples, as text
  std::string data_problem;           // "": it can be read
  std::vector<std::string> refusals;  // what train would say, and end
  std::string folder_problem;         // "": files can be made there
  bool folder_is_missing = false;     // train would create the checkpoint folder
  bool sees_chiefs_file = true;       // in the checkpoint folder
};

// As JSON text. Decoding throws PeerError for what is none.
std::string encode(const TaskReport& report);
TaskReport decode_task_report(const std::string& text);

}  // namespace syncopate
