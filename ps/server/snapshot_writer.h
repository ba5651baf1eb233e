// A shard's snapshots: files that a server started anew goes on from. Written in the background, to
// a temporary file that is synced and renamed; the newest ones are kept.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "ps/net/wake_event.h"
#include "ps/server/served_variables.h"

namespace syncopate::ps {

struct SnapshotFile {
  std::uint64_t cut = 0;
  wire::DeclarationT declaration;
  ShardSnapshot state;
  std::vector<float> running_statistics;
  std::vector<WorkerClock> entries;
  std::vector<std::uint8_t> coordinator;  // shard 0: Coordinator::save()
};

// Thread-safe but for construction; a thread of its own writes and reads.
class SnapshotWriter {
 public:
  // Files are DIR/shard-<index>-cut-<cut>.snapshot. An empty folder name: write() is not called.
  // Each file says which job's it is: those of another one are removed, as is what a server that
  // was killed has left half written. Of what is damaged the log tells. Heads alone are read:
  // whether values are sound shows when a file is gone back to.
  SnapshotWriter(std::filesystem::path dir, int index, std::string nonce);
  SnapshotWriter(const SnapshotWriter&) = delete;
  SnapshotWriter& operator=(const SnapshotWriter&) = delete;
  ~SnapshotWriter();  // a file under way is finished

  // Cuts that there are whole files of, ascending.
  std::vector<std::uint64_t> existing() const;

  struct Job {
    std::shared_ptr<const CutCopy> copy;
    wire::DeclarationT declaration;
    std::vector<std::uint8_t> coordinator;
  };
  void write(Job job);
  // The cut whose file has come to stand since the last call.
  std::optional<std::uint64_t> take_written();
  // Reads a file in the background, in place of one that was asked for before and is not there yet.
  void read_later(std::uint64_t cut);
  // What was read since the last call.
  std::optional<SnapshotFile> take_read();
  // The cut that was to be read, if its file turned out to be gone, cut short or damaged since the
  // last call: then the log tells why, and the file is removed.
  std::optional<std::uint64_t> take_unreadable();
  // A file that could not be written: disk full, folder gone.
  std::optional<std::string> failure() const;
  int descriptor() const noexcept { return event_.descriptor(); }

  // Throws FileError for a file that is missing, cut short or damaged, naming it.
  SnapshotFile read(std::uint64_t cut) const;
  // SnapshotFile::coordinator alone; values and slots are not read, and may be damaged.
  std::vector<std::uint8_t> read_coordinator(std::uint64_t cut) const;
  // Removes the files of this cut and of later ones, also one that is being written: they count no
  // longer, and would push out those that do.
  void remove_from(std::uint64_t cut);
  // Removes this shard's files: a fresh job must not go back to an older one's, nor does anybody go
  // back to those of a job that is over. Waits for a file under way.
  void remove_all();

  static constexpr std::size_t kKept = 3;

 private:
  void run(const std::stop_token& stop);
  void write_file(const Job& job);
  void read_file(std::uint64_t cut);
  void save(const Job& job) const;
  // Once a file stands: itself if nobody wants it any more, else the oldest.
  void remove_unwanted(std::uint64_t written);
  void remove_foreign();

  const std::filesystem::path dir_;
  const int index_;
  const std::string nonce_;
  WakeEvent event_;
  mutable std::mutex mutex_;
  std::condition_variable_any asked_;
  std::condition_variable_any idle_;
  std::optional<Job> job_;
  std::optional<std::uint64_t> writing_;  // the cut
  bool is_unwanted_ = false;              // the file that is being written
  std::optional<std::uint64_t> written_;
  std::optional<std::uint64_t> wanted_;  // to be read
  std::optional<SnapshotFile> read_;
  std::optional<std::uint64_t> unreadable_;
  std::optional<std::string> failure_;
  std::jthread thread_;
};

}  // namespace syncopate::ps
