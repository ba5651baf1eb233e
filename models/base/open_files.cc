#include "models/base/open_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>

#include "models/base/errors.h"
#include "models/base/file_descriptor.h"

namespace syncopate {
namespace {

// The largest limit that is asked for. Some programs that inherit the limit, such as mpirun, close
// every possible descriptor one by one. Source: the default of fs.nr_open in Linux.
constexpr rlim_t kMostOpenFiles = rlim_t{1} << 20;
// The limit that a message proposes where the need is not known.
constexpr std::int64_t kUsualLimit = 1024;

}  // namespace

void raise_open_file_limit() noexcept {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  const rlim_t wanted = std::min(limit.rlim_max, kMostOpenFiles);
  if (limit.rlim_cur >= wanted) return;
  limit.rlim_cur = wanted;
  // On failure the soft limit stays.
  setrlimit(RLIMIT_NOFILE, &limit);
}

std::int64_t open_file_limit() noexcept {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  return static_cast<std::int64_t>(std::min(limit.rlim_cur, rlim_t{1} << 30));
}

bool is_open_file_limit_reached() noexcept {
  return !FileDescriptor(open("/dev/null", O_RDONLY | O_CLOEXEC)) && errno == EMFILE;
}

void require_open_files(std::int64_t needed, std::string_view task) {
  const std::int64_t limit = open_file_limit();
  if (limit >= needed) return;
  throw UsageError(fmt::format(
      "{} needs {} open files, and the limit is {}: raise it with ulimit -n {}, in a new shell or "
      "as root if that is refused",
      task, needed, limit, needed));
}

std::string open_files_advice(int error_number) {
  if (error_number != EMFILE) return "";
  const std::int64_t limit = open_file_limit();
  return fmt::format("; the limit is {}: raise it with ulimit -n {}", limit,
                     std::max(kUsualLimit, 2 * limit));
}

std::string file_size_advice(int error_number) {
  rlimit limit{};
  if (error_number != EFBIG || getrlimit(RLIMIT_FSIZE, &limit) != 0) return "";
  if (limit.rlim_cur == RLIM_INFINITY) return "";
  return fmt::format("; the limit is {} bytes: raise it with ulimit -f unlimited", limit.rlim_cur);
}

}  // namespace syncopate
