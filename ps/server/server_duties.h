// What every server does when shard 0 tells it to: make its shard, forget workers, take part in
// cuts, keep snapshots, go back to one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ps/server/data_service.h"
#include "ps/server/server.h"
#include "ps/server/snapshot_writer.h"
#include "ps/wire/message.h"

namespace syncopate::ps {

// The control thread only.
class ServerDuties {
 public:
  ServerDuties(const ServerOptions& options, DataService& data,
               std::function<void(const std::string&)> note);

  // Of this server, as it stands in the roster.
  wire::ServerAddressT address() const;
  // Cuts that it has files of, ascending.
  const std::vector<std::uint64_t>& snapshots() const noexcept { return snapshots_; }
  // Their files are removed: nobody goes back to them any more.
  void forget_snapshots();
  // Server 0: the coordinator's part of them, the oldest first. Nothing else of them is read: that
  // may take long, and all wait. Throws FileError.
  std::vector<std::vector<std::byte>> saved_jobs() const;
  // A message of shard 0's. Throws FileError, UsageError.
  void obey(const wire::MessageT& message);
  // What is to be said to shard 0; some of it comes later than the order it answers.
  std::vector<wire::MessageT> take_replies();
  // Readable when a reply may have come up.
  int descriptor() const noexcept { return writer_.descriptor(); }

  bool is_finished() const noexcept { return is_finished_; }
  const std::optional<std::string>& failure() const noexcept { return failure_; }
  // Of all pushes so far.
  std::vector<StalenessHistogram> staleness() const;

 private:
  void declare(const wire::DeclaredT& declared);
  void freeze(std::uint64_t cut);
  void begin_cut(const wire::CutT& cut);
  void release(const wire::ReleaseT& release);
  void end_cut();
  void remove_snapshots_from(std::uint64_t cut);
  void go_back_to(const SnapshotFile& file);
  void do_without(std::uint64_t cut);
  void reply(wire::MessageT message) { replies_.push_back(std::move(message)); }

  const ServerOptions& options_;
  DataService& data_;
  const std::function<void(const std::string&)> note_;
  SnapshotWriter writer_;
  std::vector<std::uint64_t> snapshots_;
  std::shared_ptr<ServedVariables> served_;
  std::uint32_t incarnation_ = 1;
  std::vector<wire::MessageT> replies_;
  std::optional<wire::CutT> cut_;            // under way
  std::optional<std::uint64_t> rolls_back_;  // to this cut, whose file is being read
  bool is_finished_ = false;
  std::optional<std::string> failure_;
};

}  // namespace syncopate::ps
