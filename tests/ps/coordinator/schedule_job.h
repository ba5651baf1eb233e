// A random job of simulated tasks: at each point one of the possible events is chosen by a seed.
// Tasks die, restart and are asked to stop in between.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "models/base/random.h"
#include "ps/coordinator/coordinator.h"
#include "ps/coordinator/wire_conversion.h"
#include "tests/ps/coordinator/schedule_server.h"
#include "tests/ps/coordinator/schedule_worker.h"

namespace syncopate::ps {

class Chance {
 public:
  explicit Chance(std::uint64_t seed) : stream_(seed, 0) {}
  // Returns a random number in 0 .. bound - 1.
  int below(std::size_t bound) {
    return static_cast<int>(stream_.below(next_++, static_cast<std::uint32_t>(bound)));
  }
  bool one_in(std::size_t bound) { return below(bound) == 0; }

 private:
  RandomStream stream_;
  std::uint64_t next_ = 0;
};

class ScheduledJob {
 public:
  // The number of tasks; 0: a small random number.
  struct Size {
    int workers = 0;
    int servers = 0;
  };
  explicit ScheduledJob(std::uint64_t seed) : ScheduledJob(seed, Size{}) {}
  ScheduledJob(std::uint64_t seed, const Size& size);
  // Runs the job to its end, and lists violations of the protocol in mistakes().
  void run();

  const std::vector<std::string>& mistakes() const noexcept { return mistakes_; }
  bool has_succeeded() const { return coordinator_->is_over() && !coordinator_->failure(); }
  const std::optional<std::string>& failure() const { return coordinator_->failure(); }
  bool lost_workers() const noexcept { return lost_workers_; }
  bool lost_servers() const noexcept { return lost_servers_; }
  bool was_stopped() const noexcept { return was_stopped_; }
  std::string description() const;

 private:
  using Choices = std::vector<std::function<void()>>;

  wire::DeclarationT random_declaration();
  wire::InitialisedT random_start();
  std::vector<SampleRange> expected_batches() const;
  bool is_synchronous() const {
    return consistency_of(declaration_) == Consistency::kSync && declaration_.backup_workers == 0;
  }
  std::int64_t batches_per_step() const {
    if (collects()) return declaration_.staleness_number;
    return consistency_of(declaration_) == Consistency::kSync && !is_synchronous()
               ? declaration_.workers - 1
               : 1;
  }
  bool collects() const {
    return declaration_.staleness_rule == static_cast<std::uint8_t>(StalenessRule::kRennala);
  }
  std::unique_ptr<Coordinator> make_coordinator();

  bool step();
  Choices choices();
  void add_choices_of_servers(Choices& can);
  void add_choices_of_lost_tasks(Choices& can);
  void send_hello(int server);
  void deliver(int index);
  void disturb();
  void kill_worker();
  void kill_server();
  void kill_server_0();
  // Sends the messages of the coordinator and the results of the servers, which are then in
  // transit.
  void deliver_outgoing();

  void check_assignment(const wire::AssignmentT& assignment);
  void check_end();
  void add_mistake(const std::string& mistake) { mistakes_.push_back(mistake); }

  // Returns the index of the task whose choices are listed first. A large job lists the choices of
  // few tasks at a time.
  int first_of(std::size_t tasks);
  bool is_enough(const Choices& can, std::size_t before) const {
    return is_large_ && can.size() > before + 8;
  }

  Chance chance_;
  Chance rule_chance_;  // so that jobs without a staleness rule do not depend on it
  const Size size_;
  const bool is_large_;
  wire::DeclarationT declaration_;
  wire::InitialisedT start_;
  std::vector<SampleRange> batches_;  // all batches to train
  std::deque<ScheduledServer> servers_;
  std::deque<ScheduledWorker> workers_;
  std::unique_ptr<Coordinator> coordinator_;
  std::set<int> to_send_hello_;      // servers that must send Hello
  std::map<TaskId, int> links_;      // the process that server 0 is connected to
  std::map<TaskId, int> processes_;  // the process of each task that runs
  int next_process_ = 1;
  int restarts_ = 0;                // counts restarts of server 0
  std::set<int> not_restarted_;     // dead workers without a restart
  std::deque<ServerEvent> events_;  // from server 0 to the coordinator, in transit
  int disturbances_left_ = 0;
  bool has_ended_ = false;  // true once a task was told that the job is over
  bool lost_workers_ = false;
  bool lost_servers_ = false;
  bool was_stopped_ = false;
  std::vector<std::string> mistakes_;
};

}  // namespace syncopate::ps
