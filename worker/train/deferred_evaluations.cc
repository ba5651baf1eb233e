#include "worker/train/deferred_evaluations.h"

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <string_view>
#include <system_error>
#include <utility>

#include "models/base/errors.h"

namespace syncopate {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFilePrefix = "to-evaluate-";
constexpr std::string_view kFileSuffix = ".copies";

enum class Mark : std::uint64_t { kToEvaluate = 0x7c0b1e5aca11ab1eU, kDone = 0x7c0b1e5ad09eab1eU };

// The head of each record of a snapshot file; the values and the state follow it. In the byte order
// of this machine, because only the same program on the same kind of machine reads the file.
struct RecordHead {
  Mark mark = Mark::kToEvaluate;
  std::int64_t step = 0;
  std::int64_t trained_samples = 0;
  double epoch = 0.0;
  double trained_seconds = 0.0;
  double began_at = 0.0;
  std::uint64_t values = 0;  // number of f32 elements of the values
  std::uint64_t state = 0;
};

std::string host_name() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

// Locks a file. Returns false when another process holds the lock, or the file system has no locks.
bool lock(int file) { return ::flock(file, LOCK_EX | LOCK_NB) == 0; }

std::uint64_t bytes_in(const RecordHead& head) {
  return sizeof(RecordHead) + (head.values + head.state) * sizeof(float);
}

bool read_all(const FileDescriptor& file, std::uint64_t offset, std::span<std::byte> bytes) {
  return read_all_at(file, offset, bytes) == bytes.size();
}

[[noreturn]] void cannot(const char* action, const fs::path& folder, bool has_name) {
  throw FileError(describe_errno(action, folder.string(), errno) +
                  (has_name ? "; make room" : "; set TMPDIR to a folder with room") +
                  ", or give --eval-when due");
}

}  // namespace

DeferredEvaluationFile::DeferredEvaluationFile(FileDescriptor file, fs::path path, fs::path folder)
    : file_(std::move(file)), path_(std::move(path)), folder_(std::move(folder)) {}

DeferredEvaluationFile DeferredEvaluationFile::create(const fs::path& folder) {
  // The number in the file name distinguishes the replicas of one process, and this process from a
  // killed one that had the same process id.
  const std::string stem = fmt::format("{}{}-{}-", kFilePrefix, host_name(), ::getpid());
  for (int number = 0;; ++number) {
    const fs::path path = folder / fmt::format("{}{}{}", stem, number, kFileSuffix);
    FileDescriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!file && errno == EEXIST) continue;
    if (!file) cannot("create a file for deferred evaluations in", folder, true);
    lock(file.get());
    return {std::move(file), path, folder};
  }
}

DeferredEvaluationFile DeferredEvaluationFile::create_nameless(const fs::path& folder) {
  std::string name = (folder / "syncopate-XXXXXX").string();
  FileDescriptor file(::mkostemp(name.data(), O_CLOEXEC));
  if (!file) cannot("create a file for deferred evaluations in", folder, false);
  ::unlink(name.c_str());
  return {std::move(file), {}, folder};
}

std::optional<DeferredEvaluationFile> DeferredEvaluationFile::take_over(const fs::path& path) {
  FileDescriptor file(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!file || !lock(file.get())) return std::nullopt;
  struct stat status {};
  if (::fstat(file.get(), &status) != 0 || status.st_nlink == 0) return std::nullopt;
  DeferredEvaluationFile taken(std::move(file), path, path.parent_path());
  taken.read_entries();
  return taken;
}

std::vector<fs::path> DeferredEvaluationFile::in_folder(const fs::path& folder) {
  std::vector<fs::path> paths;
  std::error_code error;
  fs::directory_iterator file(folder, error);
  for (; !error && file != fs::directory_iterator(); file.increment(error)) {
    const std::string name = file->path().filename().string();
    if (name.starts_with(kFilePrefix) && name.ends_with(kFileSuffix)) paths.push_back(file->path());
  }
  std::ranges::sort(paths);
  return paths;
}

void DeferredEvaluationFile::read_entries() {
  struct stat status {};
  if (::fstat(file_.get(), &status) != 0) fail("read a deferred evaluation in");
  const auto size = static_cast<std::uint64_t>(status.st_size);
  RecordHead head;
  while (read_all(file_, size_, std::as_writable_bytes(std::span(&head, 1)))) {
    const bool is_known = head.mark == Mark::kToEvaluate || head.mark == Mark::kDone;
    const std::uint64_t most = size / sizeof(float);  // keeps the sum of both counts below 2^64
    if (!is_known || head.values > most || head.state > most) break;
    if (bytes_in(head) > size - size_) break;
    if (head.mark == Mark::kToEvaluate) {
      entries_.push_back({.moment = {.step = head.step,
                                     .epoch = head.epoch,
                                     .trained_samples = head.trained_samples,
                                     .trained_seconds = head.trained_seconds,
                                     .began_at = head.began_at},
                          .offset = size_,
                          .values = head.values,
                          .state = head.state});
    }
    size_ += bytes_in(head);
  }
}

void DeferredEvaluationFile::append(const EvalMetrics& moment, const Snapshot& copy) {
  const RecordHead head{.step = moment.step,
                        .trained_samples = moment.trained_samples,
                        .epoch = moment.epoch,
                        .trained_seconds = moment.trained_seconds,
                        .began_at = moment.began_at.value_or(0.0),
                        .values = copy.values.f32().size(),
                        .state = copy.state.f32().size()};
  try {
    write(std::as_bytes(std::span(&head, 1)));
    write(copy.values.bytes());
    write(copy.state.bytes());
  } catch (const FileError&) {
    // Cuts off the record that was written in part, so that a process that takes over the file can
    // read the complete records.
    [[maybe_unused]] const int failed = ::ftruncate(file_.get(), static_cast<off_t>(size_));
    throw;
  }
  entries_.push_back(
      {.moment = moment, .offset = size_, .values = head.values, .state = head.state});
  size_ += bytes_in(head);
}

void DeferredEvaluationFile::write(std::span<const std::byte> bytes) {
  if (write_all(file_, bytes) < bytes.size()) fail("store a deferred evaluation in");
}

Snapshot DeferredEvaluationFile::read(const Entry& entry) const {
  Snapshot copy{make_host_tensor({static_cast<std::int64_t>(entry.values)}, DType::kF32),
                {},
                make_host_tensor({static_cast<std::int64_t>(entry.state)}, DType::kF32)};
  const std::uint64_t begin = entry.offset + sizeof(RecordHead);
  if (!read_all(file_, begin, copy.values.bytes()) ||
      !read_all(file_, begin + entry.values * sizeof(float), copy.state.bytes())) {
    if (errno == 0) errno = EIO;  // the file ends too early
    fail("read a deferred evaluation in");
  }
  return copy;
}

void DeferredEvaluationFile::done(const Entry& entry) {
  const Mark mark = Mark::kDone;
  // If marking the snapshot as evaluated fails, another process may evaluate it a second time,
  // which does no harm.
  [[maybe_unused]] const ssize_t written =
      ::pwrite(file_.get(), &mark, sizeof(mark),
               static_cast<off_t>(entry.offset + offsetof(RecordHead, mark)));
  std::erase_if(entries_, [at = entry.offset](const Entry& each) { return each.offset == at; });
  if (entries_.empty()) remove();
}

void DeferredEvaluationFile::remove() noexcept {
  entries_.clear();
  if (!path_.empty()) ::unlink(path_.c_str());
}

void DeferredEvaluationFile::fail(const char* action) const {
  cannot(action, folder_, !path_.empty());
}

DeferredEvaluations::DeferredEvaluations(DeferredEvaluationsOptions options)
    : options_(std::move(options)) {
  // An unusable folder is reported here rather than at the first evaluation. The folder of a run is
  // checked with its checkpoints.
  if (!options_.is_of_run) DeferredEvaluationFile::create_nameless(options_.folder);
}

void DeferredEvaluations::remove_earlier_run() {
  if (!options_.is_of_run) return;
  for (const auto& path : DeferredEvaluationFile::in_folder(options_.folder)) {
    if (auto left = DeferredEvaluationFile::take_over(path)) left->remove();
  }
}

void DeferredEvaluations::add(const EvalMetrics& moment, const Snapshot& copy) {
  if (!own_) {
    own_.emplace(options_.is_of_run ? DeferredEvaluationFile::create(options_.folder)
                                    : DeferredEvaluationFile::create_nameless(options_.folder));
  }
  own_->append(moment, copy);
}

void DeferredEvaluations::take_over() {
  if (!options_.is_of_run) return;
  for (const auto& path : DeferredEvaluationFile::in_folder(options_.folder)) {
    if (own_ && own_->path() == path) continue;
    if (auto left = DeferredEvaluationFile::take_over(path))
      taken_over_.push_back(std::move(*left));
  }
}

std::int64_t DeferredEvaluations::size() const noexcept {
  std::size_t count = own_ ? own_->entries().size() : 0;
  for (const DeferredEvaluationFile& file : taken_over_) count += file.entries().size();
  return static_cast<std::int64_t>(count);
}

void DeferredEvaluations::evaluate(
    const std::function<bool(const EvalMetrics&, const Snapshot&)>& evaluate) {
  std::vector<std::pair<DeferredEvaluationFile*, DeferredEvaluationFile::Entry>> all;
  const auto add = [&](DeferredEvaluationFile& file) {
    for (const DeferredEvaluationFile::Entry& entry : file.entries())
      all.emplace_back(&file, entry);
    if (file.entries().empty()) file.remove();
  };
  if (own_) add(*own_);
  std::ranges::for_each(taken_over_, add);
  std::ranges::stable_sort(all, {}, [](const auto& each) { return each.second.moment.step; });
  for (const auto& [file, entry] : all) {
    if (!evaluate(entry.moment, file->read(entry))) return;
    file->done(entry);
  }
  own_.reset();
  taken_over_.clear();
}

std::string DeferredEvaluations::describe_rest() const {
  const std::string count = fmt::format("{}{} deferred until the end", size(),
                                        size() == 1 ? " evaluation" : " evaluations");
  return options_.is_of_run
             ? count + ": the snapshots stay in " + options_.folder.string() +
                   ", and a run with --resume evaluates them at its end"
             : count + " will not be made: the job was stopped and has no --checkpoint-dir";
}

}  // namespace syncopate
