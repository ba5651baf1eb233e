#include "deploy/doctor/task_report.h"

#include <nlohmann/json.hpp>

#include "models/base/errors.h"

namespace syncopate {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(TaskReport, name, host, boot_id, program, version, libraries,
                                   isa, cpus, threads, computes, gpus, clock_seconds,
                                   shm_free_bytes, open_files, proxies, roce, roce_index,
                                   device_problem, data, data_problem, refusals, folder_problem,
                                   folder_is_missing, sees_chiefs_file)

std::string encode(const TaskReport& report) { return nlohmann::json(report).dump(); }

TaskReport decode_task_report(const std::string& text) {
  try {
    return nlohmann::json::parse(text).get<TaskReport>();
  } catch (const nlohmann::json::exception&) {
    throw PeerError("a task answered doctor in another language; start all tasks with one program");
  }
}

}  // namespace syncopate
