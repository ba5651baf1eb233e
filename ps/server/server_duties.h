// What every server does when it receives a message of the coordinator: builds its shard, removes
// workers, takes part in snapshots, writes snapshot files, and rolls back to a snapshot. Used by
// ControlServer and ServerControlClient.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ps/server/data_service.h"
#include "ps/server/server.h"
#include "ps/server/snapshot_writer.h"
#include "ps/wire/message.h"

namespace syncopate::ps {

// Carries out the coordinator's messages on a server. Used by the control thread only.
class ServerDuties {
 public:
  ServerDuties(const ServerOptions& options, DataService& data,
               std::function<void(const std::string&)> note);

  // A function that returns the coordinator's part of a snapshot, or nullopt if the snapshot was
  // given up. On server 0 it is set by set_save_job(); take_replies() calls it after the variables
  // were copied.
  using SaveJob = std::function<std::optional<std::vector<std::byte>>(std::uint64_t snapshot)>;
  void set_save_job(SaveJob save_job) { save_job_ = std::move(save_job); }

  // Returns the message that registers this server with the coordinator.
  wire::HelloT hello() const;
  // Returns the numbers of the snapshots that this server has as files, ascending.
  const std::vector<std::uint64_t>& snapshots() const noexcept { return snapshots_; }
  // Removes all snapshot files of this server.
  void drop_snapshots();
  // On server 0, returns the coordinator's part of each snapshot, oldest first. Does not read the
  // values, because all tasks wait while the coordinator restarts. Throws FileError.
  std::vector<std::vector<std::byte>> job_snapshots() const;
  // Handles a message of the coordinator. Throws FileError, UsageError.
  void on_message(const wire::MessageT& message);
  // Returns the replies to send to the coordinator. A reply may come long after the message that it
  // answers.
  std::vector<wire::MessageT> take_replies();
  // Returns a descriptor that is readable when take_replies() may have a new reply.
  int descriptor() const noexcept { return writer_.descriptor(); }

  bool is_finished() const noexcept { return is_finished_; }
  const std::optional<std::string>& failure() const noexcept { return failure_; }
  StalenessTotals staleness() const;  // of all pushes applied so far

 private:
  void declare(const wire::DeclaredT& declared);
  void freeze(std::uint64_t snapshot);
  void begin_snapshot(const wire::SnapshotT& request);
  void release(const wire::ReleaseT& release);
  void write_snapshot(std::shared_ptr<const ServedSnapshot> snapshot);
  void end_snapshot(bool is_written);
  void remove_snapshots_from(std::uint64_t snapshot);
  void restore(const SnapshotFile& file);
  void report_unreadable(std::uint64_t snapshot);
  void reply(wire::MessageT message) { replies_.push_back(std::move(message)); }

  const ServerOptions& options_;
  DataService& data_;
  const std::function<void(const std::string&)> note_;
  SaveJob save_job_;
  SnapshotWriter writer_;
  std::vector<std::uint64_t> snapshots_;
  std::shared_ptr<ServedVariables> served_;
  std::uint32_t incarnation_ = 1;
  std::vector<wire::MessageT> replies_;
  std::optional<wire::SnapshotT> requested_;   // the snapshot being made
  std::optional<std::uint64_t> roll_back_to_;  // the snapshot that is being read
  std::uint32_t roll_back_as_ = 0;             // the incarnation in the order to go back to it
  // The part of the note to the user about the roll-back that says what happens to the steps after
  // snapshot roll_back_to_.
  std::string after_roll_back_;
  bool is_finished_ = false;
  std::optional<std::string> failure_;
};

// Counts this start of server 0 in a file in `dir`, the folder of its snapshots. With the count, a
// restarted server 0 gives out other numbers than before, even if no snapshot was made in between.
// Returns the number of earlier starts with this nonce; 0 if `dir` or `nonce` is empty. Throws
// FileError.
int count_starts(const std::filesystem::path& dir, const std::string& nonce);
// Removes the file of count_starts(). Called when the job is over.
void reset_start_count(const std::filesystem::path& dir);

}  // namespace syncopate::ps
