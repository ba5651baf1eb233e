#include "ps/server/snapshot_writer.h"

#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <utility>

#include "models/base/errors.h"
#include "models/base/log.h"
#include "models/base/parse_number.h"
#include "models/base/replacing_file.h"

namespace syncopate::ps {
namespace {

constexpr std::string_view kSuffix = ".snapshot";
constexpr const char* kVoidSuffix = ".void";

std::string prefix_of(int index) { return fmt::format("shard-{}-", index); }

std::filesystem::path path_of(const std::filesystem::path& dir, int index, std::uint64_t snapshot) {
  return dir / fmt::format("{}{}{}", prefix_of(index), snapshot, kSuffix);
}

// What the name of a file says. A temporary file was left behind by a killed server: its name is
// that of a snapshot file and a suffix, which ReplacingFile or void_file() has appended.
struct FileName {
  std::uint64_t snapshot = 0;
  bool is_temporary = false;
};

// Returns nullopt unless the file is one of this shard. The folder belongs to the user, who may
// have files such as "shard-0-of-4.safetensors" there.
std::optional<FileName> parse_name(std::string_view name, int index) {
  const std::string prefix = prefix_of(index);
  const std::size_t end = name.find(kSuffix);
  if (!name.starts_with(prefix) || end == std::string_view::npos) return std::nullopt;
  const auto snapshot =
      parse_number<std::uint64_t>(name.substr(prefix.size(), end - prefix.size()));
  if (!snapshot) return std::nullopt;
  const std::string_view rest = name.substr(end + kSuffix.size());
  if (rest.empty()) return FileName{*snapshot, false};
  constexpr std::string_view kTemporary = ReplacingFile::kTemporarySuffix;
  const bool is_temporary =
      rest == kVoidSuffix ||
      (rest.starts_with(kTemporary) && parse_number<std::uint64_t>(rest.substr(kTemporary.size())));
  return is_temporary ? std::optional(FileName{*snapshot, true}) : std::nullopt;
}

}  // namespace

SnapshotWriter::SnapshotWriter(std::filesystem::path dir, int index, std::string nonce,
                               std::function<void()> renew_dir)
    : dir_(std::move(dir)),
      index_(index),
      nonce_(std::move(nonce)),
      renew_dir_(std::move(renew_dir)) {
  if (dir_.empty()) return;
  remove_foreign();
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
  pthread_setname_np(thread_.native_handle(), "ps-snapshot");
}

SnapshotWriter::~SnapshotWriter() {
  thread_.request_stop();
  asked_.notify_all();
}

void SnapshotWriter::remove_foreign() {
  if (!std::filesystem::is_directory(dir_)) return;
  std::vector<std::filesystem::path> unwanted;
  for (const auto& entry : std::filesystem::directory_iterator(dir_)) {
    const std::optional<FileName> name = parse_name(entry.path().filename().string(), index_);
    if (!name) continue;
    if (!name->is_temporary && is_own(entry.path(), name->snapshot)) {
      existing_.insert(name->snapshot);
    } else {
      unwanted.push_back(entry.path());
    }
  }
  for (const std::filesystem::path& path : unwanted) std::filesystem::remove(path);
}

bool SnapshotWriter::is_own(const std::filesystem::path& path, std::uint64_t number) const {
  try {
    const std::unique_ptr<wire::SnapshotHeaderT> fields = read_snapshot_header(path);
    return fields->nonce == nonce_ && fields->shard == index_ && fields->snapshot == number;
  } catch (const FileError& error) {
    log(LogLevel::kWarning, std::string(error.what()) + "; it is removed");
    return false;
  }
}

std::vector<std::uint64_t> SnapshotWriter::existing() const {
  const std::lock_guard lock(mutex_);
  return {existing_.begin(), existing_.end()};
}

void SnapshotWriter::remove_file(std::uint64_t number) {
  std::filesystem::remove(path_of(dir_, index_, number));
  const std::lock_guard lock(mutex_);
  existing_.erase(number);
}

void SnapshotWriter::void_file(std::uint64_t number) {
  const std::filesystem::path path = path_of(dir_, index_, number);
  // The new name is a temporary file's: a file that is left behind is removed at the next start.
  const std::filesystem::path renamed = path.string() + kVoidSuffix;
  std::error_code failed;
  std::filesystem::rename(path, renamed, failed);
  if (failed) return remove_file(number);
  const std::lock_guard lock(mutex_);
  existing_.erase(number);
  void_.push_back(renamed);
}

void SnapshotWriter::write(Job job) {
  {
    const std::lock_guard lock(mutex_);
    job_ = std::move(job);
  }
  asked_.notify_all();
}

std::optional<std::uint64_t> SnapshotWriter::take_written() {
  event_.clear();
  const std::lock_guard lock(mutex_);
  return std::exchange(written_, std::nullopt);
}

std::optional<SnapshotWriter::Unwritten> SnapshotWriter::take_unwritten() {
  const std::lock_guard lock(mutex_);
  return std::exchange(unwritten_, std::nullopt);
}

std::optional<std::string> SnapshotWriter::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

void SnapshotWriter::read_later(std::uint64_t number) {
  {
    const std::lock_guard lock(mutex_);
    wanted_ = number;
    read_.reset();
    unreadable_.reset();
  }
  asked_.notify_all();
}

std::optional<std::uint64_t> SnapshotWriter::take_unreadable() {
  const std::lock_guard lock(mutex_);
  return std::exchange(unreadable_, std::nullopt);
}

std::optional<SnapshotFile> SnapshotWriter::take_read() {
  const std::lock_guard lock(mutex_);
  return std::exchange(read_, std::nullopt);
}

void SnapshotWriter::run(const std::stop_token& stop) {
  for (;;) {
    std::optional<Job> job;
    std::optional<std::uint64_t> wanted;
    std::vector<std::filesystem::path> unwanted;
    {
      std::unique_lock lock(mutex_);
      if (!asked_.wait(lock, stop, [&] { return job_ || wanted_ || !void_.empty(); })) return;
      wanted = std::exchange(wanted_, std::nullopt);  // reads come first: the job waits for one
      if (!wanted && job_) {
        job = std::exchange(job_, std::nullopt);
        writing_ = job->snapshot->number;
        is_unwanted_ = false;
      }
      if (!wanted && !job) unwanted = std::exchange(void_, {});
    }
    if (wanted) read_file(*wanted);
    if (job) write_file(*job);
    std::error_code ignored;  // a file that stays is removed at the next start
    for (const std::filesystem::path& path : unwanted) std::filesystem::remove(path, ignored);
    event_.notify();
  }
}

void SnapshotWriter::renew_dir() {
  try {
    if (renew_dir_) renew_dir_();
  } catch (...) {
    const std::lock_guard lock(mutex_);
    existing_.clear();
    throw;
  }
  const std::lock_guard lock(mutex_);
  std::error_code ignored;
  std::erase_if(existing_, [&](std::uint64_t number) {
    return !std::filesystem::exists(path_of(dir_, index_, number), ignored);
  });
}

void SnapshotWriter::write_file(const Job& job) {
  const std::uint64_t number = job.snapshot->number;
  std::optional<std::string> problem;
  bool is_renewed = false;
  try {
    renew_dir();
    is_renewed = true;
    ReplacingFile file(path_of(dir_, index_, number));
    write_snapshot_file(file, job, index_, nonce_);
    if (!is_unwanted()) file.commit();
    {
      const std::lock_guard lock(mutex_);
      if (!is_unwanted_) existing_.insert(number);
    }
    remove_unwanted(number);
  } catch (const std::exception& error) {
    problem = error.what();
    std::error_code ignored;
    if (is_renewed) std::filesystem::remove(path_of(dir_, index_, number), ignored);
  }
  {
    const std::lock_guard lock(mutex_);
    if (problem) {
      existing_.erase(number);
      unwritten_ = Unwritten{number, *problem};
    } else if (!is_unwanted_) {
      written_ = number;
    }
    writing_.reset();
  }
}

void SnapshotWriter::read_file(std::uint64_t number) {
  std::optional<SnapshotFile> file;
  std::optional<std::uint64_t> unreadable;
  std::optional<std::string> problem;
  try {
    file = read(number);
  } catch (const FileError& error) {
    log(LogLevel::kWarning, std::string(error.what()) + "; it is removed");
    unreadable = number;
    std::error_code ignored;  // a damaged file that cannot be removed stays unreadable
    std::filesystem::remove(path_of(dir_, index_, number), ignored);
  } catch (const std::exception& error) {
    problem = error.what();
  }
  const std::lock_guard lock(mutex_);
  if (unreadable) existing_.erase(number);
  if (wanted_) return;  // another snapshot has been requested since
  if (problem) failure_ = problem;
  read_ = std::move(file);
  unreadable_ = unreadable;
}

bool SnapshotWriter::is_unwanted() const {
  const std::lock_guard lock(mutex_);
  return is_unwanted_;
}

void SnapshotWriter::remove_unwanted(std::uint64_t written) {
  if (is_unwanted()) return remove_file(written);
  const std::vector<std::uint64_t> numbers = existing();
  for (std::size_t i = 0; i + kKept < numbers.size(); ++i) remove_file(numbers[i]);
}

void SnapshotWriter::remove_from(std::uint64_t number) {
  {
    const std::lock_guard lock(mutex_);
    if (job_ && job_->snapshot->number >= number) job_.reset();
    if (written_ && *written_ >= number) written_.reset();
    is_unwanted_ = is_unwanted_ || (writing_ && *writing_ >= number);
  }
  for (const std::uint64_t other : existing()) {
    if (other >= number) void_file(other);
  }
  asked_.notify_all();
}

SnapshotFile SnapshotWriter::read(std::uint64_t number) const {
  return read_snapshot_file(path_of(dir_, index_, number));
}

std::vector<std::uint8_t> SnapshotWriter::read_coordinator(std::uint64_t number) const {
  return std::move(read_snapshot_header(path_of(dir_, index_, number))->coordinator);
}

}  // namespace syncopate::ps
