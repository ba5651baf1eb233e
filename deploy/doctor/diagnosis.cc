#include "deploy/doctor/diagnosis.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <utility>

#include "models/base/errors.h"
#include "models/base/resource_limits.h"
#include "strategies/strategy_row.h"

namespace syncopate {
namespace {

using Kind = Finding::Kind;

// With at most this many bytes free in /dev/shm, the segments of MPI and NCCL may not fit. 64 MiB
// is also the default size of /dev/shm in a container.
constexpr std::int64_t kSmallSharedMemory = std::int64_t{64} << 20;
constexpr double kSkewNoticed = 1.0;  // the smallest clock difference that is reported, in seconds

std::string place(const TaskReport& task) { return task.name + " (host " + task.host + ")"; }

std::string joined(const std::vector<std::string>& words) {
  return fmt::format("{}", fmt::join(words, ", "));
}

// Returns the value of a flag in a task's report; "" if the report lacks the flag.
std::string value_of(const std::string& flag, const TaskReport& task) {
  const auto found = std::ranges::find(task.agreements, flag, &Agreement::name);
  return found == task.agreements.end() ? "" : found->value;
}

std::string count(std::size_t number, const std::string& noun) {
  return fmt::format("{} {}{}", number, noun, number == 1 ? "" : "s");
}

// Groups the tasks by the kernel that they run under.
std::map<std::string, std::vector<const TaskReport*>> by_machine(
    const std::vector<TaskReport>& tasks) {
  std::map<std::string, std::vector<const TaskReport*>> machines;
  for (const TaskReport& task : tasks) {
    machines[task.boot_id.empty() ? task.host : task.boot_id].push_back(&task);
  }
  return machines;
}

// Returns the first task with another value than task 0; null if all agree.
const TaskReport* first_that_differs(const std::vector<TaskReport>& tasks,
                                     const std::function<std::string(const TaskReport&)>& value) {
  const auto other = std::ranges::find_if(
      tasks, [&](const TaskReport& task) { return value(task) != value(tasks.front()); });
  return other == tasks.end() ? nullptr : &*other;
}

class Diagnosis {
 public:
  Diagnosis(const JobUnderTest& job, const std::vector<TaskReport>& tasks)
      : job_(job), tasks_(tasks) {}

  std::vector<Finding> all() {
    check_size();
    check_programs();
    check_cpus();
    check_gpus();
    check_batch();
    check_clocks();
    check_flags();
    inspect_data();
    check_refusals();
    check_folders();
    check_memory();
    check_limits();
    check_network();
    for (const std::string& note : job_.notes) add(Kind::kNote, "cluster", note);
    return std::move(findings_);
  }

 private:
  void add(Kind kind, const std::string& what, const std::string& line) {
    findings_.push_back({kind, what, line});
  }

  // True if every task has reported. Findings about all tasks are possible only then.
  bool have_all_joined() const { return std::cmp_greater_equal(tasks_.size(), job_.tasks); }

  void check_size() {
    const auto machines = by_machine(tasks_).size();
    if (!have_all_joined()) return;
    const bool wants_several = row_of({.name = job_.strategy}).needs_other_tasks();
    if (wants_several && tasks_.size() == 1) {
      return add(Kind::kError, "tasks",
                 "--strategy " + job_.strategy +
                     " has one task here: start it with syncopate launch --workers N, srun or "
                     "mpirun, or run doctor itself that way");
    }
    const std::string size = count(tasks_.size(), "task") + " on " + count(machines, "machine");
    add(Kind::kGood, "tasks", size + (tasks_.size() == 1 ? "" : " met"));
  }

  void check_programs() {
    if (const TaskReport* other =
            first_that_differs(tasks_, [](const TaskReport& task) { return task.program; })) {
      add(Kind::kError, "program",
          place(*other) + " runs another build (" + other->version + ", " + other->program +
              ") than " + place(tasks_.front()) + " (" + tasks_.front().version + ", " +
              tasks_.front().program + "): start all tasks with the same file");
    } else if (have_all_joined()) {
      add(Kind::kGood, "program",
          tasks_.front().version + ", build " + tasks_.front().program + ", everywhere");
    }
    std::set<std::string> names;
    for (const TaskReport& task : tasks_) {
      for (const auto& [name, version] : task.libraries) names.insert(name);
    }
    for (const std::string& name : names) {
      const auto version = [&name](const TaskReport& task) {
        const auto found = task.libraries.find(name);
        return found == task.libraries.end() ? std::string("none") : found->second;
      };
      if (const TaskReport* other = first_that_differs(tasks_, version)) {
        add(Kind::kWarning, "libraries",
            place(*other) + " loads " + name + " " + version(*other) + ", " +
                place(tasks_.front()) + " " + version(tasks_.front()) +
                ": results may differ in the last digits; load the same modules everywhere");
      }
    }
    if (const TaskReport* other =
            first_that_differs(tasks_, [](const TaskReport& task) { return task.isa; })) {
      add(Kind::kWarning, "processors",
          place(*other) + " has " + other->isa + ", " + place(tasks_.front()) + " " +
              tasks_.front().isa +
              ": runs repeat bit for bit only on nodes of one kind; request such nodes "
              "(--constraint)");
    }
  }

  void check_cpus() {
    for (const auto& [machine, tasks] : by_machine(tasks_)) {
      std::set<int> cpus;
      int threads = 0;
      for (const TaskReport* task : tasks) {
        cpus.insert(task->cpus.begin(), task->cpus.end());
        threads += task->threads;
      }
      // Tasks with the same quota are taken to be in one cgroup.
      CpuLimits limits{.affinity = static_cast<int>(cpus.size()), .quota = {}};
      const auto most = std::ranges::max_element(tasks, {}, &TaskReport::cpu_quota);
      const bool have_all =
          std::ranges::all_of(tasks, [](const TaskReport* task) { return task->cpu_quota > 0.0; });
      if (have_all) limits.quota = (*most)->cpu_quota;
      if (threads > limits.usable() && !job_.shares_devices) {
        add(Kind::kWarning, "CPUs",
            count(tasks.size(), "task") + " on host " + tasks.front()->host + " compute with " +
                count(static_cast<std::size_t>(threads), "thread") + " on " + describe(limits) +
                ": they will wait for each other; give each task its own (--cpus-per-task, "
                "--threads)");
      } else {
        add(Kind::kGood, "CPUs",
            fmt::format("{}: {} for {}", tasks.front()->host, describe(limits),
                        count(static_cast<std::size_t>(threads), "thread")));
      }
    }
  }

  void check_gpus() {
    if (!job_.devices.starts_with("cuda")) return;
    for (const TaskReport& task : tasks_) {
      if (!task.device_problem.empty()) {
        add(Kind::kError, "GPUs", place(task) + ": " + task.device_problem);
      }
    }
    for (const auto& [machine, tasks] : by_machine(tasks_)) {
      std::map<std::string, const TaskReport*> owners;
      for (const TaskReport* task : tasks) {
        for (const std::string& gpu : task->gpus) {
          const auto [owner, is_first] = owners.emplace(gpu, task);
          if (is_first || owner->second == task || job_.shares_devices) continue;
          add(Kind::kError, "GPUs",
              place(*owner->second) + " and " + task->name + " have the same GPU " + gpu +
                  ": request one per task (--gpus-per-task=1), or add --share-devices");
        }
      }
    }
  }

  void check_batch() {
    if (job_.global_batch == 0 || job_.replicas < 1) return;
    if (job_.global_batch < job_.replicas) {
      return add(
          Kind::kError, "batch",
          fmt::format(
              "--batch-size {} is less than a sample for each of {} replicas: give a larger one",
              job_.global_batch, job_.replicas));
    }
    if (job_.global_batch % job_.replicas == 0) return;
    add(Kind::kWarning, "batch",
        fmt::format("--batch-size {} does not divide by {} replicas: some have one sample more, "
                    "and the others wait for them",
                    job_.global_batch, job_.replicas));
  }

  void check_clocks() {
    const auto [first, last] = std::ranges::minmax_element(tasks_, {}, &TaskReport::clock_seconds);
    const double skew = last->clock_seconds - first->clock_seconds;
    if (skew > kSkewNoticed) {
      add(Kind::kWarning, "clocks",
          fmt::format("{} is {:.1f} s ahead of {}: times in logs do not fit together, and make and "
                      "quickstart may build again; start ntpd or chronyd",
                      place(*last), skew, place(*first)));
    } else if (tasks_.size() > 1) {
      add(Kind::kGood, "clocks", fmt::format("within {:.3f} s", skew));
    }
  }

  // Compares the flags that workers compare when they meet. Versions and instruction sets are
  // compared by check_programs().
  void check_flags() {
    const auto first = std::ranges::find_if(
        tasks_, [](const TaskReport& task) { return !task.agreements.empty(); });
    if (first == tasks_.end()) return;
    bool do_all_agree = true;
    for (const Agreement& agreement : first->agreements) {
      if (!agreement.name.starts_with("--")) continue;
      const auto other = std::find_if(first + 1, tasks_.end(), [&](const TaskReport& task) {
        return !task.agreements.empty() && value_of(agreement.name, task) != agreement.value;
      });
      if (other == tasks_.end()) continue;
      do_all_agree &= !agreement.must;
      add(agreement.must ? Kind::kError : Kind::kWarning, "flags",
          fmt::format("{} has {} {}, {} has {} {}: give all tasks the same", place(*other),
                      agreement.name, value_of(agreement.name, *other), place(*first),
                      agreement.name, agreement.value));
    }
    if (do_all_agree && have_all_joined() && tasks_.size() > 1) {
      add(Kind::kGood, "flags", "equal where they must be");
    }
  }

  // Servers read no data, so their reports are left out.
  void inspect_data() {
    const TaskReport* first = nullptr;
    for (const TaskReport& task : tasks_) {
      if (!task.data_problem.empty()) {
        add(Kind::kError, "data", place(task) + ": " + task.data_problem);
        continue;
      }
      if (task.data.empty()) continue;
      if (first == nullptr) first = &task;
      if (task.data == first->data) continue;
      return add(Kind::kError, "data",
                 place(task) + " finds other samples than " + place(*first) +
                     ": give all tasks the same --data");
    }
    if (first != nullptr && have_all_joined())
      add(Kind::kGood, "data", "all workers that read it find the same");
  }

  // Reports the errors with which train would end. Tasks with equal flags find equal errors; each
  // error is printed once.
  void check_refusals() {
    std::set<std::string> reported;
    for (const TaskReport& task : tasks_) {
      for (const std::string& line : task.refusals) {
        if (reported.insert(line).second) add(Kind::kError, "train", place(task) + ": " + line);
      }
    }
  }

  void check_folders() {
    for (const TaskReport& task : tasks_) {
      if (!task.folder_problem.empty()) {
        add(Kind::kError, "checkpoints", place(task) + ": " + task.folder_problem);
      }
    }
    if (job_.checkpoint_dir.empty()) {
      return add(
          Kind::kNote, "checkpoints",
          "no --checkpoint-dir: a job that is stopped or loses a node begins again at step 0");
    }
    // Each task looks for a file that the first task creates in the checkpoint folder. If the first
    // task cannot write there, the check is skipped.
    const bool is_there = tasks_.front().folder_problem.empty();
    const auto blind = std::ranges::find_if(tasks_, [](const TaskReport& task) {
      return !task.sees_chiefs_file && task.folder_problem.empty();
    });
    if (is_there && blind != tasks_.end()) {
      return add(Kind::kError, "checkpoints",
                 place(*blind) + " does not see what " + place(tasks_.front()) + " writes to " +
                     job_.checkpoint_dir +
                     ": choose a folder that all nodes share; otherwise --resume finds no "
                     "checkpoint on the others");
    }
    const bool is_broken = std::ranges::any_of(
        tasks_, [](const TaskReport& task) { return !task.folder_problem.empty(); });
    if (is_broken || !have_all_joined()) return;
    add(Kind::kGood, "checkpoints",
        job_.checkpoint_dir + (tasks_.front().folder_is_missing
                                   ? " does not exist; train will create it where all tasks see it"
                                   : " is seen by all"));
  }

  void check_memory() {
    const bool uses_it = job_.collective == "mpi" || job_.collective == "nccl";
    for (const auto& [machine, tasks] : by_machine(tasks_)) {
      const TaskReport& task = *tasks.front();
      if (!uses_it || tasks.size() < 2 || task.shm_free_bytes > kSmallSharedMemory) continue;
      add(Kind::kWarning, "/dev/shm",
          fmt::format("host {} has {} MB free there, too little for --collective {}: start the "
                      "container with --shm-size=1g or bind the host's /dev/shm",
                      task.host, task.shm_free_bytes >> 20, job_.collective));
    }
  }

  void check_limits() {
    for (const TaskReport& task : tasks_) {
      if (task.open_files >= task.open_files_needed) continue;
      return add(Kind::kError, "open files",
                 fmt::format("{} may open {} files and needs {}: raise the limit with ulimit -n {}",
                             place(task), task.open_files, task.open_files_needed,
                             task.open_files_needed));
    }
  }

  void check_network() {
    const TaskReport& first = tasks_.front();
    if (!first.proxies.empty()) {
      add(Kind::kNote, "proxies",
          joined(first.proxies) + (first.proxies.size() == 1 ? " is" : " are") +
              " set: harmless, tasks talk to each other directly");
    }
    if (!first.rdma_ports.empty()) add(Kind::kNote, "RDMA", joined(first.rdma_ports));
    const auto variables = [](const TaskReport& task) {
      return task.nccl.empty() ? std::string("none of NCCL's variables") : joined(task.nccl);
    };
    if (!job_.devices.starts_with("cuda")) return;
    if (const TaskReport* other = first_that_differs(tasks_, variables)) {
      add(Kind::kWarning, "NCCL",
          place(*other) + " has " + variables(*other) + ", " + place(first) + " has " +
              variables(first) + ": set the same everywhere");
    } else if (!first.nccl.empty() || !first.rdma_ports.empty()) {
      add(Kind::kNote, "NCCL", variables(first) + (first.nccl.empty() ? " is set" : ""));
    }
  }

  const JobUnderTest& job_;
  const std::vector<TaskReport>& tasks_;
  std::vector<Finding> findings_;
};

}  // namespace

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Agreement, name, value, must)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(TaskReport, name, host, boot_id, program, version, libraries,
                                   isa, cpus, cpu_quota, threads, computes, gpus, clock_seconds,
                                   shm_free_bytes, open_files, open_files_needed, agreements,
                                   proxies, rdma_ports, nccl, device_problem, data, data_problem,
                                   refusals, folder_problem, folder_is_missing, sees_chiefs_file)

std::string encode(const TaskReport& report) { return nlohmann::json(report).dump(); }

TaskReport decode_task_report(const std::string& text) {
  try {
    return nlohmann::json::parse(text).get<TaskReport>();
  } catch (const nlohmann::json::exception&) {
    throw PeerError("a task answered doctor in another language; start all tasks with one program");
  }
}

std::vector<Finding> diagnose(const JobUnderTest& job, const std::vector<TaskReport>& tasks) {
  return Diagnosis(job, tasks).all();
}

std::string describe(std::vector<Finding> findings) {
  std::ranges::stable_sort(findings, {}, &Finding::kind);
  std::string text;
  for (const Finding& finding : findings) {
    text += fmt::format("{:<8} {:<14} {}\n", name(finding.kind), finding.what, finding.line);
  }
  return text;
}

bool has_errors(const std::vector<Finding>& findings) {
  return std::ranges::any_of(
      findings, [](const Finding& finding) { return finding.kind == Finding::Kind::kError; });
}

}  // namespace syncopate
