// The nonce of a job if its launcher gives none, as in a bare `srun`: the task that hosts the
// rendezvous draws one and writes it to a file that only its user can read.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <string_view>
#include <thread>
#include <utility>

#include "models/base/deadline.h"
#include "models/base/errors.h"
#include "models/base/file_descriptor.h"
#include "models/base/log.h"
#include "models/base/secret.h"
#include "strategies/cluster/prepare_rendezvous.h"

namespace syncopate {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::milliseconds kNextTry(50);
constexpr std::size_t kLongestNonce = 64;
constexpr std::string_view kAdvice =
    "; start the tasks in a folder that all their nodes share, or export SYNCOPATE_NONCE=$(cat "
    "/proc/sys/kernel/random/uuid) before srun";

FileError failed(const char* action, const fs::path& path) {
  return FileError(describe_errno(action, "the job's nonce, " + path.string(), errno) +
                   std::string(kAdvice));
}

void write_for_this_user(const fs::path& path, const std::string& text) {
  const fs::path temporary = path.string() + "." + random_nonce();
  const FileDescriptor file(
      open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR));
  if (!file) throw failed("write", path);
  const bool is_written = write(file.get(), text.data(), text.size()) == std::ssize(text) &&
                          fsync(file.get()) == 0 && rename(temporary.c_str(), path.c_str()) == 0;
  if (is_written) return;
  const FileError error = failed("write", path);
  unlink(temporary.c_str());
  throw error;
}

// Returns the content of the file; "" if it does not exist yet.
std::string read_of_this_user(const fs::path& path) {
  // NFS remembers for half a minute that a file does not exist, unless its folder is opened again.
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  const FileDescriptor opened(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const FileDescriptor file(open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  if (!file && errno == ENOENT) return "";
  struct stat status {};
  if (!file || fstat(file.get(), &status) != 0) throw failed("read", path);
  // Another user with write access to the folder must not choose the nonce, nor read it.
  const bool is_private = status.st_uid == geteuid() && (status.st_mode & (S_IRWXG | S_IRWXO)) == 0;
  if (!is_private) {
    throw FileError(
        fmt::format("the job's nonce, {}, is not a file that only this user can read; "
                    "remove it, or export SYNCOPATE_NONCE before srun",
                    path.string()));
  }
  std::array<char, kLongestNonce> bytes{};
  const ssize_t size = read(file.get(), bytes.data(), bytes.size());
  if (size < 0) throw failed("read", path);
  return {bytes.data(), static_cast<std::size_t>(size)};
}

// Logs one line for a job of several tasks that any program of the network can join. Without a
// rendezvous, rank 0 draws a nonce and MPI broadcasts it (worker/run/job_membership.cc).
void warn_without_secret(const ClusterSpec& spec) {
  const bool has_secret = !spec.nonce.empty() && !spec.is_nonce_guessable;
  const bool is_alone = spec.world_size + spec.num_servers == 1;
  if (has_secret || is_alone || !spec.rendezvous.endpoint || !spec.hosts_rendezvous()) return;
  log(LogLevel::kWarning,
      "this job has no secret nonce, so any program that reaches its ports can join it; export "
      "SYNCOPATE_NONCE=$(cat /proc/sys/kernel/random/uuid) once and give it to all tasks");
}

}  // namespace

NonceFile::NonceFile(fs::path path) : path_(std::move(path)), nonce_(random_nonce()) {
  write_for_this_user(path_, nonce_);
}

NonceFile::~NonceFile() { unlink(path_.c_str()); }

std::unique_ptr<NonceFile> share_nonce(ClusterSpec& spec, std::chrono::milliseconds timeout) {
  if (!spec.nonce.empty() || spec.nonce_file.empty()) {
    warn_without_secret(spec);
    return nullptr;
  }
  if (spec.hosts_rendezvous()) {
    auto file = std::make_unique<NonceFile>(spec.nonce_file);
    spec.nonce = file->nonce();
    return file;
  }
  for (const Deadline deadline = Deadline::after(timeout); spec.nonce.empty();) {
    spec.nonce = read_of_this_user(spec.nonce_file);
    if (!spec.nonce.empty()) break;
    if (deadline.passed()) {
      throw FileError(fmt::format("the first task has not written the job's nonce, {}, within {}{}",
                                  fs::absolute(spec.nonce_file).string(), in_seconds(timeout),
                                  kAdvice));
    }
    std::this_thread::sleep_for(kNextTry);
  }
  return nullptr;
}

}  // namespace syncopate
