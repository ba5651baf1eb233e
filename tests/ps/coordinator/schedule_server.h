// A parameter server of a job of chance: one bucket, whose values are a list of the pushes
// that are in them.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ps/coordinator/ledger.h"
#include "ps/wire/message.h"
#include "tests/ps/coordinator/schedule_rule.h"

namespace syncopate::ps {

// What a push has come to, for the coordinator (server 0), and what a worker may read now.
struct ServerNews {
  enum class Kind : std::uint8_t { kApplied, kDropped, kAnswered };
  Kind kind = Kind::kApplied;
  TrainingPush push;  // kAnswered: `version` is that of the values
};

class ScheduledServer {
 public:
  // A file of a cut, or a copy in memory.
  struct Copy {
    std::vector<TrainingPush> applied;
    std::uint64_t version = 1;
    std::vector<std::byte> coordinator;  // server 0's files
  };

  ScheduledServer(int index, const ConsistencyOptions& consistency)
      : index_(index), consistency_(consistency), rule_(consistency) {}

  // The process ends; what it wrote to disk stays. A new one begins.
  void restart();
  wire::HelloT make_hello() const;
  void obey(const wire::MessageT& message);
  // Answers to shard 0; the front is the oldest.
  std::deque<wire::MessageT> replies;
  std::deque<wire::MessageT> orders;  // that have not arrived yet

  void join(WorkerId worker, std::uint32_t incarnation, std::uint64_t sequence);
  void push(const TrainingPush& push);
  std::vector<ServerNews> take_news();
  // The last bucket is copied. Of server 0 the file gets these bytes, or those that came along.
  bool has_copied() const noexcept { return has_copied_; }
  void finish_cut(std::vector<std::byte> coordinator);

  bool is_serving() const noexcept { return is_serving_; }
  bool is_finished() const noexcept { return is_finished_; }
  std::uint32_t incarnation() const noexcept { return incarnation_; }
  std::uint64_t version() const noexcept { return version_; }
  const std::vector<TrainingPush>& applied() const noexcept { return applied_; }
  const std::map<std::uint64_t, Copy>& copies() const noexcept { return copies_; }
  const std::map<std::uint64_t, Copy>& files() const noexcept { return files_; }
  // Something that must not happen has happened.
  const std::vector<std::string>& mistakes() const noexcept { return mistakes_; }

  bool is_alive = true;

 private:
  void work();
  bool rest();
  bool drop_late();
  bool apply_next();
  void answer();
  void roll_back(const wire::RollBackT& back);

  const int index_;
  const ConsistencyOptions consistency_;
  std::map<std::uint64_t, Copy> files_;

  std::uint32_t incarnation_ = 0;
  bool is_declared_ = false;
  bool is_serving_ = false;
  bool is_finished_ = false;
  ScheduledRule rule_;
  std::vector<TrainingPush> waiting_;
  std::vector<TrainingPush> owed_;             // answers
  std::map<WorkerId, std::uint64_t> resting_;  // with its last push
  std::vector<TrainingPush> applied_;
  std::uint64_t version_ = 1;
  std::optional<std::uint64_t> frozen_;  // cut
  std::optional<wire::CutT> cut_;
  bool has_copied_ = false;
  std::map<std::uint64_t, Copy> copies_;
  std::vector<ServerNews> news_;
  std::vector<std::string> mistakes_;
};

}  // namespace syncopate::ps
