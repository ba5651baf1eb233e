// The snapshot files of a shard. A restarted server restores its values from them. A background
// thread writes each snapshot to a temporary file, syncs it and renames it. Only the newest files
// are kept.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "ps/net/wake_event.h"
#include "ps/server/snapshot_file.h"

namespace syncopate::ps {

// Writes and reads a shard's snapshot files on its own thread. Thread-safe except for construction.
class SnapshotWriter {
 public:
  // Snapshot files are `dir`/shard-<index>-<number>.snapshot. If the path `dir` is empty, write()
  // must not be called. The constructor removes this shard's temporary files, its files of other
  // jobs (with another nonce in the header), and its files with a damaged header, which it logs. It
  // reads only headers; values are checked when a file is restored.
  // `renew_dir` is called before each write, on the writer's thread. It throws if the folder
  // belongs to another job; then the file is not written, and nothing in the folder is removed.
  SnapshotWriter(std::filesystem::path dir, int index, std::string nonce,
                 std::function<void()> renew_dir = {});
  SnapshotWriter(const SnapshotWriter&) = delete;
  SnapshotWriter& operator=(const SnapshotWriter&) = delete;
  ~SnapshotWriter();  // completes the file being written

  // Returns the numbers of the snapshots with a complete file, ascending. Only the constructor
  // reads the folder, since reading it takes a file descriptor.
  std::vector<std::uint64_t> existing() const;

  using Job = SnapshotContent;
  void write(Job job);
  // Returns the number of a snapshot if its file was completed since the last call.
  std::optional<std::uint64_t> take_written();
  // Returns the snapshot with a file that could not be written since the last call, if there is
  // one. Reasons are a full disk, no free descriptor, or another job that uses the folder. The
  // files of earlier snapshots stay.
  struct Unwritten {
    std::uint64_t snapshot = 0;
    std::string reason;
  };
  std::optional<Unwritten> take_unwritten();
  // Starts to read a snapshot file in the background. Replaces an earlier request that is not
  // complete.
  void read_later(std::uint64_t snapshot);
  // Returns the snapshot file that was read since the last call, if there is one.
  std::optional<SnapshotFile> take_read();
  // Returns the number of the requested snapshot if its file was found missing, truncated or
  // damaged since the last call. The reason was logged, and the file removed.
  std::optional<std::uint64_t> take_unreadable();
  // Returns why a snapshot could not be read, if the cause was not a missing or damaged file;
  // nullopt otherwise. The file may still be valid.
  std::optional<std::string> failure() const;
  int descriptor() const noexcept { return event_.descriptor(); }

  // Reads the file of this snapshot, on the calling thread. Throws FileError, which names the file,
  // if the file is missing, truncated or damaged.
  SnapshotFile read(std::uint64_t snapshot) const;
  // Reads only SnapshotFile::coordinator of the snapshot's file. Does not check values and slots.
  std::vector<std::uint8_t> read_coordinator(std::uint64_t snapshot) const;
  // Removes the files of this snapshot and of later snapshots, including a file being written.
  // These snapshots are no longer valid, and would otherwise displace valid files. The files are
  // renamed at once and removed in the background, because removing a file of 2 GiB takes half a
  // second, during which the coordinator would not answer.
  void remove_from(std::uint64_t snapshot);
  // Removes all snapshot files of this shard, at the start and at the end of a job.
  void remove_all() { remove_from(0); }

  static constexpr std::size_t kKept = 3;

 private:
  void run(const std::stop_token& stop);
  void write_file(const Job& job);
  // Calls renew_dir_, and then removes the snapshots without a file from existing(). If renew_dir_
  // throws, removes all snapshots from existing() instead.
  void renew_dir();
  void read_file(std::uint64_t snapshot);
  bool is_unwanted() const;
  // Removes the snapshot file `written`, which is now complete, if remove_from() was called for
  // this snapshot in the meantime. Otherwise removes the oldest files beyond kKept.
  void remove_unwanted(std::uint64_t written);
  void remove_foreign();
  // Returns whether this is a file of this job's snapshot `number`. Logs that a damaged file is
  // removed.
  bool is_own(const std::filesystem::path& path, std::uint64_t number) const;
  void remove_file(std::uint64_t snapshot);
  void void_file(std::uint64_t snapshot);  // renames the file; the thread removes it later

  const std::filesystem::path dir_;
  const int index_;
  const std::string nonce_;
  const std::function<void()> renew_dir_;
  WakeEvent event_;
  mutable std::mutex mutex_;
  std::condition_variable_any asked_;
  std::set<std::uint64_t> existing_;  // the snapshots with a complete file
  std::optional<Job> job_;
  std::optional<std::uint64_t> writing_;  // the snapshot being written
  bool is_unwanted_ = false;              // remove_from() was called for the snapshot being written
  std::optional<std::uint64_t> written_;
  std::optional<Unwritten> unwritten_;
  std::optional<std::uint64_t> wanted_;      // the snapshot to read
  std::vector<std::filesystem::path> void_;  // renamed files to remove
  std::optional<SnapshotFile> read_;
  std::optional<std::uint64_t> unreadable_;
  std::optional<std::string> failure_;
  std::jthread thread_;
};

}  // namespace syncopate::ps
