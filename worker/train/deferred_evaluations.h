// Snapshots of the variables that are evaluated after training has ended (--eval-when end).
// assignment_runner.cc adds and evaluates them. The snapshots are kept when the servers roll back
// and training is repeated.
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

// A file of snapshots, each with the step and time at which it was taken. One thread of one
// process, the owner, appends to the file and reads the snapshots back. Another process can take
// over the file after the owner has ended. The owner holds a lock on the file while it lives.
class DeferredEvaluationFile {
 public:
  // These two functions create an empty file of snapshots. The kernel removes a nameless file when
  // its process ends. They throw FileError.
  static DeferredEvaluationFile create(const std::filesystem::path& folder);
  static DeferredEvaluationFile create_nameless(const std::filesystem::path& folder);
  // Takes over the snapshot file of a process that has ended. Returns nullopt if that process still
  // lives, or if another process has taken over the file.
  static std::optional<DeferredEvaluationFile> take_over(const std::filesystem::path& path);
  // Returns the paths of all snapshot files in the folder, of any process.
  static std::vector<std::filesystem::path> in_folder(const std::filesystem::path& folder);

  // Appends a snapshot. Does not store the result of `moment`. Throws FileError if the file cannot
  // be written, and leaves its contents unchanged.
  void append(const EvalMetrics& moment, const Snapshot& copy);

  // A snapshot in the file that still has to be evaluated, and its place in the file. entries()
  // returns the snapshots in the order in which they were written, without a snapshot that a killed
  // process wrote only in part.
  struct Entry {
    EvalMetrics moment;
    std::uint64_t offset = 0;  // first byte of the record in the file
    std::uint64_t values = 0;  // number of elements of Snapshot::values
    std::uint64_t state = 0;
  };
  const std::vector<Entry>& entries() const noexcept { return entries_; }
  // Reads the snapshot of an entry. Throws FileError.
  Snapshot read(const Entry& entry) const;
  // Marks a snapshot of the file as evaluated, so that no process evaluates the snapshot again.
  // Removes the file when all snapshots are marked.
  void done(const Entry& entry);
  // Removes all entries, and deletes the file.
  void remove() noexcept;

  const std::filesystem::path& path() const noexcept { return path_; }  // empty for a nameless file

 private:
  DeferredEvaluationFile(FileDescriptor file, std::filesystem::path path,
                         std::filesystem::path folder);
  void read_entries();
  void write(std::span<const std::byte> bytes);
  [[noreturn]] void fail(const char* action) const;

  FileDescriptor file_;
  std::filesystem::path path_;
  std::filesystem::path folder_;
  std::uint64_t size_ = 0;  // bytes of complete records in the file
  std::vector<Entry> entries_;
};

struct DeferredEvaluationsOptions {
  std::filesystem::path folder;
  // True: the folder belongs to the run, and a later process of the run evaluates the snapshots
  // that a killed or stopped process left there. False: the snapshots are lost when their process
  // ends.
  bool is_of_run = false;
};

// Stores the snapshots of one worker until training has ended, and then evaluates them. One thread
// only.
class DeferredEvaluations {
 public:
  // If the folder does not belong to the run, checks that a file can be created in it, and throws
  // FileError if not. Creates no file of snapshots: add() creates it, because most workers never
  // store a snapshot.
  explicit DeferredEvaluations(DeferredEvaluationsOptions options);

  // Removes the snapshots of an earlier run. Call it when a run starts at step 0.
  void remove_earlier_run();

  // Adds a snapshot. Throws FileError naming the folder.
  void add(const EvalMetrics& moment, const Snapshot& copy);
  // Takes over the snapshot files that ended processes of the run have left.
  void take_over();
  std::int64_t size() const noexcept;

  // Calls `evaluate` with each snapshot, in the order of steps, and removes the snapshot if
  // `evaluate` returns true. Ends early if `evaluate` returns false. Throws FileError, and what
  // `evaluate` throws.
  void evaluate(const std::function<bool(const EvalMetrics&, const Snapshot&)>& evaluate);

  // Returns a message for a job that was stopped: how many snapshots are left, and whether a
  // resumed run will evaluate them.
  std::string describe_rest() const;

 private:
  const DeferredEvaluationsOptions options_;
  std::optional<DeferredEvaluationFile> own_;
  std::vector<DeferredEvaluationFile> taken_over_;
};

}  // namespace syncopate
