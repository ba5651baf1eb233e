// The snapshot files of a shard, which a restarted server restores. The files are written in the
// background to a temporary file, which is synced and renamed; the newest files are kept.
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
  // Snapshot files are DIR/shard-<index>-<number>.snapshot. If `dir` is empty, write() must not
  // be called. Removes the files of other jobs, known by the nonce in the header, temporary files,
  // and files with a damaged header, which are logged. Values are checked only when a file is
  // restored. `renew_dir` is called before each write, on the writer's thread; if it throws, the
  // folder belongs to another job: the file is not written, and nothing there is removed.
  SnapshotWriter(std::filesystem::path dir, int index, std::string nonce,
                 std::function<void()> renew_dir = {});
  SnapshotWriter(const SnapshotWriter&) = delete;
  SnapshotWriter& operator=(const SnapshotWriter&) = delete;
  ~SnapshotWriter();  // completes the file being written, and removes void files

  // Returns the numbers of the snapshots with a complete file, ascending. The folder is read at the
  // start only, since that takes a descriptor.
  std::vector<std::uint64_t> existing() const;

  using Job = SnapshotContent;
  void write(Job job);
  // Returns the number of a snapshot if its file was completed since the last call.
  std::optional<std::uint64_t> take_written();
  // Returns a snapshot if its file could not be written since the last call, because the disk is
  // full, no descriptor is left, or another job uses the folder. Complete files stay.
  struct Unwritten {
    std::uint64_t snapshot = 0;
    std::string reason;
  };
  std::optional<Unwritten> take_unwritten();
  // Reads a snapshot file in the background. Replaces an earlier request that is not complete.
  void read_later(std::uint64_t snapshot);
  // Returns the snapshot file that was read since the last call.
  std::optional<SnapshotFile> take_read();
  // Returns the requested snapshot, if its file was found missing, truncated or damaged since the
  // last call. The reason is logged, and the file is removed.
  std::optional<std::uint64_t> take_unreadable();
  // Returns why a snapshot could not be read, although its file may be valid.
  std::optional<std::string> failure() const;
  int descriptor() const noexcept { return event_.descriptor(); }

  // Throws FileError, which names the snapshot file, if it is missing, truncated or damaged.
  SnapshotFile read(std::uint64_t snapshot) const;
  // Reads SnapshotFile::coordinator only; values and slots of the file are not checked.
  std::vector<std::uint8_t> read_coordinator(std::uint64_t snapshot) const;
  // Removes the files of this snapshot and of later ones, including a file being written: they are
  // void, and would otherwise replace valid files. The files are renamed at once and removed in the
  // background: a file of 2 GiB takes half a second, and the coordinator would not answer during
  // this time.
  void remove_from(std::uint64_t snapshot);
  // Removes all snapshot files of this shard, at the start and at the end of a job.
  void remove_all() { remove_from(0); }

  static constexpr std::size_t kKept = 3;

 private:
  void run(const std::stop_token& stop);
  void write_file(const Job& job);
  // Forgets the snapshots without a file, or all if the folder was lost to another job.
  void renew_dir();
  void read_file(std::uint64_t snapshot);
  bool is_unwanted() const;
  // After a snapshot file is complete: removes it if it has become void, otherwise the oldest.
  void remove_unwanted(std::uint64_t written);
  void remove_foreign();
  std::set<std::uint64_t> files_in_folder() const;
  void remove_file(std::uint64_t snapshot);
  void void_file(std::uint64_t snapshot);  // renames the file, which the thread then removes

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
  bool is_unwanted_ = false;              // the snapshot being written has become void
  std::optional<std::uint64_t> written_;
  std::optional<Unwritten> unwritten_;
  std::optional<std::uint64_t> wanted_;      // the snapshot to read the file of
  std::vector<std::filesystem::path> void_;  // to be removed
  std::optional<SnapshotFile> read_;
  std::optional<std::uint64_t> unreadable_;
  std::optional<std::string> failure_;
  std::jthread thread_;
};

}  // namespace syncopate::ps
