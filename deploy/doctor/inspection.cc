#include "deploy/doctor/inspection.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sys/statvfs.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "models/backend/cuda_module.h"
#include "models/base/affinity.h"
#include "models/base/deadline.h"
#include "models/base/errors.h"
#include "models/base/file_descriptor.h"
#include "models/base/isa.h"
#include "models/base/open_files.h"
#include "models/base/own_program.h"
#include "models/base/random.h"
#include "models/base/resource_limits.h"
#include "models/base/trace.h"
#include "ps/net/endpoint.h"
#include "strategies/collective/mpi_session.h"
#include "strategies/pipeline/stages.h"
#include "strategies/snapshot.h"
#include "worker/input/record/example.h"
#include "worker/run/exit_codes.h"
#include "worker/run/run_data.h"
#include "worker/run/run_devices.h"
#include "worker/run/run_folder.h"
#include "worker/run/run_memory.h"
#include "worker/run/run_sizes.h"
#include "worker/run/run_start.h"
#include "worker/train/metrics.h"
#include "worker/train/tensorboard.h"

namespace syncopate {
namespace {

namespace fs = std::filesystem;

// Returns a host snapshot with the shapes of the run's variables, for any device.
Snapshot host_snapshot(const TrainOptions& options, const Graph& graph) {
  const std::int64_t elements = graph.parameter_layout().total();
  return {.values = make_host_tensor({elements}, DType::kF32),
          .slots = OptimizerSlots(options.strategy.optimizer, elements).named(),
          .state = make_host_tensor({graph.state_layout().total()}, DType::kF32)};
}

// Finds the errors that train reports before its first step, with train's own checks. Files that
// only the chief reads and writes are checked by the chief alone. Leaves no files behind.
class TrainChecks {
 public:
  TrainChecks(const TrainOptions& options, const DataSplits& data)
      : options_(options), data_(data) {}

  // Returns the messages of all errors with which train would end, one line each. Throws nothing.
  std::vector<std::string> all() {
    attempt([&] {
      graph_ = network_for_data(options_.model, options_.data, data_, options_.network,
                                options_.label_smoothing);
      require_metrics_of(*graph_, options_.loop.rules);
    });
    if (graph_) attempt([&] { try_cut(); });
    std::optional<std::int64_t> global_batch;
    attempt([&] {
      StrategyOptions shares = options_.strategy;
      global_batch =
          choose_batch(options_, expected_replicas(options_), data_.train->size(), shares);
      if (graph_) {
        require_batch_norm_values(*graph_, options_, expected_replicas(options_), *global_batch);
        try_memory(shares);
      }
      require_whole_round(options_, data_.train->size(), *global_batch);
    });
    if (options_.cluster.is_chief()) {
      look_for_another_run();
      if (graph_ && global_batch) attempt([&] { try_first_values(*global_batch); });
      attempt([&] { try_metrics(); });
    }
    return std::move(refusals_);
  }

 private:
  template <typename Check>
  void attempt(const Check& check) {
    try {
      check();
    } catch (const Error& error) {
      refusals_.emplace_back(error.what());
    }
  }

  // shares: the strategy, with the largest batch of a replica.
  void try_memory(const StrategyOptions& shares) const {
    TrainOptions run = options_;
    run.strategy = shares;
    require_memory(run, *graph_, nullptr);
  }

  void try_cut() const {
    if (!has_stages(options_)) return;
    const StrategyOptions& strategy = options_.strategy;
    (void)choose_stages(*graph_, strategy.stages, strategy.cut,
                        origin_of_stages(strategy.stages, options_.cluster.world_size > 1));
  }

  void look_for_another_run() {
    const fs::path& folder = options_.loop.checkpoint_dir;
    if (folder.empty()) return;
    if (const auto refusal = run_folder_refusal(folder)) refusals_.push_back(*refusal);
  }

  void try_first_values(std::int64_t global_batch) const {
    find_first_values(options_, *graph_, fresh_progress(options_, data_, global_batch),
                      host_snapshot(options_, *graph_));
  }

  void try_metrics() const {
    if (options_.metrics.empty()) return;
    std::error_code unseen;
    const bool was_there = fs::exists(options_.metrics, unseen);
    make_metrics_writer(options_.metrics, true);
    if (!was_there) fs::remove(options_.metrics, unseen);
  }

  const TrainOptions& options_;
  const DataSplits& data_;
  std::optional<Graph> graph_;
  std::vector<std::string> refusals_;
};

std::string first_line_of(const fs::path& file) {
  std::string line;
  std::ifstream in(file);
  std::getline(in, line);
  return line;
}

std::string hash_of_program() {
  std::ifstream in(own_file(), std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(in)), {});
  return fmt::format("{:016x}", hash_name(bytes));
}

std::vector<std::string> proxies(const Environment& environment) {
  std::vector<std::string> set;
  for (const char* name : {"http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "all_proxy",
                           "ALL_PROXY", "no_proxy"}) {
    if (environment.get(name)) set.emplace_back(name);
  }
  return set;
}

// Returns the variables that change what NCCL does, as NAME=VALUE.
std::vector<std::string> nccl_variables(const Environment& environment) {
  std::vector<std::string> set;
  for (const auto& [name, value] : environment.variables()) {
    if (name.starts_with("NCCL_") && !name.starts_with("NCCL_DEBUG"))
      set.push_back(fmt::format("{}={}", name, value));
  }
  return set;
}

std::int64_t free_shared_memory() {
  struct statvfs room {};
  if (statvfs("/dev/shm", &room) != 0) return 0;
  return static_cast<std::int64_t>(room.f_bavail) * static_cast<std::int64_t>(room.f_frsize);
}

void inspect_data(const TrainOptions& options, TaskReport& report) {
  try {
    // Drawn data is kept for train, but in no folder that doctor would have to create.
    std::error_code unseen;
    const fs::path cache =
        fs::is_directory(options.cache_dir, unseen) ? options.cache_dir : fs::path();
    const DataSplits data = open_dataset(options.data, {.cache_dir = cache,
                                                        .seed = options.strategy.seed,
                                                        .split = options.split,
                                                        .image = options.image});
    report.data = describe_samples(data);
    report.refusals = TrainChecks(options, data).all();
  } catch (const Error& error) {
    report.data_problem = error.what();
  }
}

// Returns why train could not create the folder or a file in it; empty if it could. flag: the flag
// and its value, for messages. Makes a file and removes it: access(2) says yes to root also where
// nothing can be created, such as in /proc.
std::string problem_of_folder(const std::string& flag, const fs::path& folder) {
  const fs::path existing = nearest_existing_folder(folder);
  std::error_code error;
  if (!fs::is_directory(existing, error)) {
    return flag + ": " + existing.string() + " is not a folder";
  }
  std::string name = existing / ".doctor-XXXXXX";
  const FileDescriptor file(mkstemp(name.data()));
  if (file) {
    fs::remove(name, error);
    return "";
  }
  return describe_errno("write into", existing.string(), errno) + " (for " + flag +
         "); give a folder that can be written";
}

// Returns why this task could not write its trace; empty if it could, or if it writes none.
std::string problem_of_trace(const TrainOptions& options) {
  if (options.trace.empty()) return "";
  try {
    check_trace_file(trace_file(options.trace, options.cluster.index, options.cluster.world_size));
  } catch (const FileError& error) {
    return error.what();
  }
  return "";
}

// Returns why this task could not write curves for TensorBoard; empty if it could, or if it writes
// none.
std::string problem_of_tensorboard(const TrainOptions& options) {
  const bool writes = options.cluster.is_chief() || !is_synchronous(options.strategy.consistency);
  if (options.tensorboard.empty() || !writes) return "";
  try {
    require_tensorboard();
  } catch (const UnavailableError& error) {
    return error.what();
  }
  return problem_of_folder("--tensorboard " + options.tensorboard.string(),
                           options.tensorboard / "train");
}

}  // namespace

std::vector<std::string> rdma_ports(const fs::path& root) {
  std::vector<std::string> ports;
  std::error_code error;
  for (const fs::directory_entry& device : fs::directory_iterator(root, error)) {
    for (const fs::directory_entry& port : fs::directory_iterator(device.path() / "ports", error)) {
      std::set<int> of_version_2;
      bool has_roce = false;
      const fs::path types = port.path() / "gid_attrs" / "types";
      for (const fs::directory_entry& gid : fs::directory_iterator(types, error)) {
        const std::string type = first_line_of(gid.path());
        has_roce = has_roce || type.find("RoCE") != std::string::npos;
        if (type.find("RoCE v2") == std::string::npos) continue;
        of_version_2.insert(std::atoi(gid.path().filename().c_str()));
      }
      const std::string layer = first_line_of(port.path() / "link_layer");
      const std::string state = first_line_of(port.path() / "state");
      std::string line = fmt::format(
          "{} port {}: {}, {}, {}", device.path().filename().string(),
          port.path().filename().string(), layer == "Ethernet" && has_roce ? "RoCE" : layer,
          state.substr(state.find(' ') + 1), first_line_of(port.path() / "rate"));
      if (!of_version_2.empty()) {
        line += fmt::format(", GID {} for RoCE v2", fmt::join(of_version_2, ", "));
      }
      ports.push_back(std::move(line));
    }
  }
  std::ranges::sort(ports);
  return ports;
}

fs::path nearest_existing_folder(const fs::path& folder) {
  std::error_code error;
  fs::path existing = fs::absolute(folder, error);
  while (!fs::exists(existing, error) && existing.has_relative_path()) {
    existing = existing.parent_path();
  }
  return existing;
}

std::string task_name(const ClusterSpec& spec) {
  return fmt::format("{} {}", name(spec.role), spec.index);
}

TaskReport inspect_task(const TrainOptions& options, const Environment& environment) {
  const bool computes = options.cluster.role == Role::kWorker;
  TaskReport report{
      .name = task_name(options.cluster),
      .host = own_host_name(),
      .boot_id = own_boot_id(),
      .program = hash_of_program(),
      .version = std::string(program_version()),
      .libraries = {},
      .isa = std::string(name(detect_isa())),
      .cpus = usable_cpus(),
      .cpu_quota = cgroup_cpus().value_or(0.0),
      .threads = std::max(1, options.strategy.lanes) * (computes ? options.strategy.replicas : 1),
      .computes = computes,
      .gpus = {},
      .shm_free_bytes = free_shared_memory(),
      .open_files = open_file_limit(),
      .open_files_needed = needed_open_files(options.cluster),
      .agreements = computes ? agreements_of(options) : std::vector<Agreement>(),
      .proxies = proxies(environment),
      .rdma_ports = rdma_ports("/sys/class/infiniband"),
      .nccl = nccl_variables(environment),
      .data = {},
      .data_problem = {},
      .refusals = {},
      .folder_problem = {}};
  for (const LibraryVersion& library : library_versions()) {
    report.libraries[library.name] = library.loaded;
  }
  if (computes) {
    inspect_data(options, report);
    for (std::string problem : {problem_of_trace(options), problem_of_tensorboard(options)}) {
      if (!problem.empty()) report.refusals.push_back(std::move(problem));
    }
  }
  if (!options.loop.checkpoint_dir.empty()) {
    std::error_code unseen;
    report.folder_is_missing = !fs::exists(options.loop.checkpoint_dir, unseen);
    report.folder_problem = problem_of_folder(
        "--checkpoint-dir " + options.loop.checkpoint_dir.string(), options.loop.checkpoint_dir);
  }
  return report;
}

void inspect_devices(TrainOptions options, Membership* membership, TaskReport& report) {
  if (options.cluster.role != Role::kWorker) return;
  const std::vector<Device>& devices = options.strategy.devices;
  try {
    find_devices(options);
  } catch (const Error& error) {
    report.device_problem = error.what();
    options.takes_own_gpus = false;  // deal_out_devices() then exchanges an empty list of GPUs
  }
  deal_out_devices(options, membership);
  if (!report.device_problem.empty() || devices.front().kind == DeviceKind::kCpu) return;
  const std::vector<CudaDevice> visible = load_cuda_module().devices();
  for (std::size_t i = 0; std::cmp_less(i, options.strategy.replicas) && i < devices.size(); ++i) {
    report.gpus.push_back(visible.at(static_cast<std::size_t>(devices[i].index)).bus_id);
  }
}

FolderToken::FolderToken(const fs::path& folder, const std::string& name) {
  if (folder.empty()) return;
  is_wanted_ = true;
  const fs::path path = nearest_existing_folder(folder) / name;
  std::ofstream file(path);
  if (file) path_ = path;
}

FolderToken::~FolderToken() {
  if (path_.empty()) return;
  std::error_code error;
  fs::remove(path_, error);
}

bool sees_token(const fs::path& folder, const std::string& name) {
  const fs::path path = nearest_existing_folder(folder) / name;
  constexpr std::chrono::seconds kVisibilityTimeout(2);
  constexpr std::chrono::milliseconds kSampleInterval(50);
  for (const Deadline deadline = Deadline::after(kVisibilityTimeout);;) {
    std::error_code error;
    if (fs::exists(path, error)) return true;
    if (deadline.passed()) return false;
    std::this_thread::sleep_for(kSampleInterval);
  }
}

std::vector<LibraryVersion> library_versions() {
  std::vector<LibraryVersion> versions = cpu_library_versions();
  versions.push_back({"zlib", ZLIB_VERSION, zlibVersion()});
  versions.push_back({"zstd", ZSTD_VERSION_STRING, ZSTD_versionString()});
  try {
    for (const LibraryVersion& library : load_cuda_module().library_versions()) {
      versions.push_back(library);
    }
  } catch (const UnavailableError&) {
    versions.push_back({"CUDA", "none", "none"});  // the command `info` prints the reason
  }
  const std::string protobuf = protobuf_version();
  versions.push_back({"protobuf", protobuf, protobuf});
  // The MPI library's version is known only after the library has been loaded.
  std::string mpi;
  try {
    mpi = mpi_library();
  } catch (const UnavailableError& error) {
    mpi = std::string("none: ") + error.what();
  }
  versions.push_back({"MPI", mpi, mpi});
  return versions;
}

}  // namespace syncopate
