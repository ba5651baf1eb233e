#include "models/base/replacing_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "models/base/errors.h"
#include "models/base/file_lock.h"

namespace syncopate {
namespace {

constexpr mode_t kReplacingFileMode = 0666;

[[noreturn]] void fail_to(std::string_view action, const std::filesystem::path& path, int error) {
  throw FileError(describe_errno(action, path.string(), error));
}

// Returns the path to rename to; for a link, the path behind it. Throws FileError for a device or a
// folder, because a rename would replace the one and refuse the other at the end, and if the path's
// folder is missing.
std::filesystem::path target_of(std::filesystem::path path) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const fs::file_status status = fs::status(path, ignored);
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    throw FileError(fmt::format("write {}: it is {}; expected a file or a new name", path.string(),
                                fs::is_directory(status) ? "a folder" : "no regular file"));
  }
  const fs::path folder = path.parent_path();
  if (!folder.empty() && !fs::is_directory(folder, ignored)) {
    throw FileError(fmt::format("write {}: there is no folder {}", path.string(), folder.string()));
  }
  require_unclaimed(path);
  return fs::is_symlink(path, ignored) && fs::exists(status) ? fs::canonical(path) : path;
}

}  // namespace

void sync_folder_of(const std::filesystem::path& path) {
  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
  const FileDescriptor descriptor(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!descriptor) fail_to("open folder", folder, errno);
  // EINVAL from fsync means that the file system does not support syncing a folder.
  if (::fsync(descriptor.get()) != 0 && errno != EINVAL) fail_to("sync folder", folder, errno);
}

ReplacingFile::ReplacingFile(std::filesystem::path path)
    : path_(target_of(std::move(path))),
      temporary_(fmt::format("{}{}{}", path_.string(), kTemporarySuffix, ::getpid())),
      file_(::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC,
                   kReplacingFileMode)) {
  if (!file_) fail_to("write", temporary_, errno);
}

ReplacingFile::~ReplacingFile() {
  if (file_) ::unlink(temporary_.c_str());
}

void ReplacingFile::write(std::span<const std::byte> bytes) {
  if (write_all(file_, bytes) < bytes.size()) fail_to("write", temporary_, errno);
}

void ReplacingFile::commit() {
  if (::fsync(file_.get()) != 0) fail_to("sync", temporary_, errno);
  // Some network file systems report a full disk only when the file is closed.
  int error = ::close(file_.release()) != 0 && errno != EINTR ? errno : 0;
  if (error == 0 && ::rename(temporary_.c_str(), path_.c_str()) != 0) error = errno;
  if (error != 0) {
    ::unlink(temporary_.c_str());
    fail_to("write", path_, error);
  }
  sync_folder_of(path_);
}

void replace_file(const std::filesystem::path& path, std::string_view text) {
  ReplacingFile file(path);
  file.write(std::as_bytes(std::span(text)));
  file.commit();
}

}  // namespace syncopate
