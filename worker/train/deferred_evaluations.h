// Copies of the variables whose evaluation is put off until training has ended (--eval-when end).
// Filled and emptied by assignment_runner.cc; outlives an attempt at training that servers have
// taken back.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "models/base/file_descriptor.h"
#include "strategies/strategy.h"
#include "worker/train/metrics.h"

namespace syncopate {

// A file of copies of the variables, each with the figures of its moment: one process appends,
// and it, or another when that process is gone, reads them back. Used by deferred_evaluations.cc.

// One thread only. Locked while this process lives.
class SnapshotFile {
 public:
  // A new one. Without a name it is gone with the process, however that ends. Throws FileError.
  static SnapshotFile create(const std::filesystem::path& folder);
  static SnapshotFile create_nameless(const std::filesystem::path& folder);
  // One whose process has ended; nothing while that lives, or when somebody else has taken it up.
  static std::optional<SnapshotFile> take_over(const std::filesystem::path& path);
  // Those in the folder, whosever they are.
  static std::vector<std::filesystem::path> in_folder(const std::filesystem::path& folder);

  // test_loss, test_accuracy, samples and seconds of the moment are not kept. Throws FileError when
  // it cannot be written; then the file is as it was.
  void append(const EvalMetrics& moment, const Snapshot& copy);

  // What nobody is done with, in the order in which it was written. What a killed process left cut
  // short is not there.
  struct Entry {
    EvalMetrics moment;
    std::uint64_t offset = 0;  // of its record
    std::uint64_t values = 0;  // elements
    std::uint64_t state = 0;
  };
  const std::vector<Entry>& entries() const noexcept { return entries_; }
  // Throws FileError.
  Snapshot read(const Entry& entry) const;
  // Whoever reads the file from now on does not see it. The last one takes the file with it.
  void done(const Entry& entry);
  // All of it, with the file.
  void remove() noexcept;

  const std::filesystem::path& path() const noexcept { return path_; }  // empty: it has no name

 private:
  SnapshotFile(FileDescriptor file, std::filesystem::path path, std::filesystem::path folder);
  void read_entries();
  void write(std::span<const std::byte> bytes);
  [[noreturn]] void fail(const char* action) const;

  FileDescriptor file_;
  std::filesystem::path path_;
  std::filesystem::path folder_;
  std::uint64_t size_ = 0;  // of whole records, bytes
  std::vector<Entry> entries_;
};

struct DeferredEvaluationsOptions {
  std::filesystem::path folder;
  // The folder is the run's own: what a process leaves there when it is killed or stopped, another
  // one of the run takes up. Else a process' copies are gone with it.
  bool is_of_run = false;
};

// One thread only.
class DeferredEvaluations {
 public:
  // Makes no file yet: most workers never need one. Throws FileError where none can be made.
  explicit DeferredEvaluations(DeferredEvaluationsOptions options);

  // The run has begun anew: what an earlier one left is none of its.
  void forget_earlier_run();

  // Throws FileError, naming the folder.
  void keep(const EvalMetrics& moment, const Snapshot& copy);
  // Also those that ended processes of the run have left.
  void take_over();
  std::int64_t size() const noexcept;

  // With each, by step, which is then done with; ends early when `evaluate` says false. Throws
  // FileError, and what `evaluate` throws.
  void evaluate(const std::function<bool(const EvalMetrics&, const Snapshot&)>& evaluate);

  // What becomes of those that are left when the job has been stopped.
  std::string describe_rest() const;

 private:
  const DeferredEvaluationsOptions options_;
  std::optional<SnapshotFile> own_;
  std::vector<SnapshotFile> of_others_;
};

}  // namespace syncopate
