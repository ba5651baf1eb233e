// `syncopate sbatch`: submits or prints a training job for Slurm.
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <ostream>
#include <span>

#include "deploy/commands/commands.h"
#include "deploy/slurm/gpu_request.h"
#include "deploy/slurm/job_script.h"
#include "models/base/errors.h"
#include "models/base/file_descriptor.h"
#include "models/base/log.h"
#include "models/base/own_program.h"

namespace syncopate {
namespace {

// Returns an open file that holds the text and is positioned at its beginning.
FileDescriptor file_with(const std::string& text) {
  FileDescriptor file(memfd_create("job script", MFD_CLOEXEC));
  if (!file) throw FileError(describe_errno("make", "a file in memory", errno));
  if (write_all(file, std::as_bytes(std::span(text))) < text.size()) {
    throw FileError(describe_errno("write", "the job script", errno));
  }
  lseek(file.get(), 0, SEEK_SET);
  return file;
}

// Submits the job script, which sbatch reads from its standard input. The output of sbatch goes to
// the user unchanged.
int submit(const std::string& script) {
  const FileDescriptor file = file_with(script);
  std::string name = "sbatch";
  std::array<char*, 2> arguments = {name.data(), nullptr};
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, file.get(), STDIN_FILENO);
  pid_t process = -1;
  const int failed =
      posix_spawnp(&process, name.c_str(), &files, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  if (failed == ENOENT) {
    throw UnavailableError(
        "sbatch: not found in PATH; submit from a login node of a Slurm cluster, or look at the "
        "script with --print");
  }
  if (failed != 0) throw FileError(describe_errno("start", "sbatch", failed));
  int status = 0;
  while (waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

// Returns the path of syncopate-bench, which stands beside this program or in the next folder of
// the build; empty if neither place has it.
std::string bench_program_of(const std::filesystem::path& own) {
  const std::filesystem::path here = own.parent_path();
  for (const std::filesystem::path& folder : {here, here.parent_path() / "bench"}) {
    if (exists(folder / "syncopate-bench")) return (folder / "syncopate-bench").string();
  }
  return "";
}

// Returns the description of the cluster's nodes; empty without Slurm, or if it does not answer.
std::string describe_nodes() {
  const std::unique_ptr<FILE, int (*)(FILE*)> output(
      popen("timeout 10 scontrol show nodes --oneliner 2>/dev/null", "r"), pclose);
  std::string text;
  if (!output) return text;
  std::array<char, 4096> part{};
  while (const std::size_t count = fread(part.data(), 1, part.size(), output.get())) {
    text.append(part.data(), count);
  }
  return text;
}

// Gives tasks on GPUs their share of a node's CPUs, if no flag gives the number.
void share_cpus(SbatchOptions& options) {
  if (options.gpus_per_task == 0) return;
  const GpuRequest gpus = requested_gpus(options);
  const auto share = cpus_per_gpu(describe_nodes(), options.partition, gpus.type,
                                  gpus.of_node(nodes_of(options), options.tasks_per_node));
  if (share) {
    options.cpus_per_task = *share * options.gpus_per_task;
    return;
  }
  options.notes.emplace_back(
      "Slurm names no node with such GPUs here, so the script requests few CPUs; give "
      "--cpus-per-task with a task's share of a node, because tasks on GPUs decode and send on "
      "CPUs");
}

}  // namespace

int run_sbatch(const SbatchOptions& options, std::ostream& out) {
  SbatchOptions filled = options;
  // For a container `program` stays empty: inside the image the programs are found through PATH.
  if (filled.program.empty() && filled.container.empty()) {
    const std::filesystem::path own = own_program();
    filled.program = own.string();
    filled.bench_program = bench_program_of(own);
  }
  share_cpus(filled);
  for (const std::string& note : filled.notes) log(LogLevel::kWarning, note);
  const std::string script = filled_script(filled);
  if (!options.print) return submit(script);
  out << script << std::flush;
  return 0;
}

}  // namespace syncopate
