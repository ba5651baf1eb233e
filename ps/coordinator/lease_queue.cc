#include "ps/coordinator/lease_queue.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "models/base/errors.h"
#include "ps/coordinator/wire_conversion.h"

namespace syncopate::ps {
namespace {

// The largest number of batches that one request of a worker is granted.
constexpr int kMostAtOnce = 1024;

// Returns the number of batches in the remaining steps of a job.
std::int64_t batches_of_steps(std::int64_t total_steps, std::int64_t done, std::int64_t per_step) {
  if (total_steps < 0 || done < 0 ||
      total_steps > std::numeric_limits<std::int64_t>::max() / per_step) {
    throw UsageError(
        fmt::format("step {} of {} with {} batches each is out of range; check --steps "
                    "and the checkpoint",
                    done, total_steps, per_step));
  }
  return std::max<std::int64_t>(total_steps - done, 0) * per_step;
}

LedgerOptions ledger_options(const wire::DeclarationT& declaration, DataPosition start) {
  return {.dataset_size = declaration.dataset_size,
          .batch_size = declaration.batch_size,
          .total_batches = 0,
          .start = std::move(start)};
}

}  // namespace

void LeaseQueue::begin(const RunPosition& start) {
  const wire::DeclarationT& declaration = *job_.declaration;
  LedgerOptions options = ledger_options(declaration, start.position);
  const Ledger validated(options);  // throws if the batch size is 0, before a division
  options.total_batches =
      declaration.total_epochs > 0
          ? batches_left(options, declaration.total_epochs)
          : batches_of_steps(declaration.total_steps, start.step, job_.batches_per_step());
  if (job_.collects_gradients()) {
    // The gradients of a last, incomplete collection would never reach the values.
    const std::int64_t all = options.total_batches;
    options.total_batches -= all % job_.batches_per_step();
    if (options.total_batches == 0 && all > 0 && start.step == 0) {
      throw UsageError(fmt::format(
          "--staleness-rule rennala:{}: the whole run has {} batches, so no update would be made; "
          "give at most rennala:{}, or train longer",
          job_.batches_per_step(), all, all));
    }
  }
  ledger_.emplace(std::move(options));
  start_step_ = start.step;
  start_samples_ = start.samples;
  rules_ = start.rules;
  sums_.pushes = start.pushes;
}

void LeaseQueue::request(int worker, int count) {
  if (job_.is_synchronous() || count < 1) return;
  requests_.push_back({worker, std::min(count, kMostAtOnce)});
  ++job_.worker(worker).open_requests;
}

void LeaseQueue::on_worker_lost(int worker) {
  std::erase_if(requests_, [&](const Request& request) { return request.worker == worker; });
  WorkerRecord& record = job_.worker(worker);
  record.open_requests = 0;
  record.is_dismissed = false;
  if (!ledger_ || job_.is_synchronous()) return;
  ledger_->give_back(worker);
  lost_[worker] = {record.incarnation, record.last_push};
}

void LeaseQueue::on_departed(const wire::WorkerLeftT& departed) {
  const auto lost = lost_.find(departed.worker);
  if (lost == lost_.end() || lost->second.incarnation != departed.incarnation) return;
  if (departed.sequence <= lost->second.last_push) return;
  ++repeated_batches_;
  lost_.erase(lost);  // several servers may report the same step
}

void LeaseQueue::keep(int worker, std::span<const SampleRange> held) {
  if (!ledger_) return;
  ledger_->keep(worker, held);
  // Under the other models a restored job rolls back, and workers drop what they hold.
  if (job_.consistency() == Consistency::kAsync) ledger_->adopt(worker, held);
}

bool LeaseQueue::awaits_holders() const {
  return awaits_holders_ && job_.is_any(WorkerRecord::Phase::kDisconnected);
}

bool LeaseQueue::count_step(int worker, std::uint64_t sequence) {
  // Each step of synchronous workers is counted by the push of worker 0.
  if (worker != 0) return false;
  const std::optional<SampleRange> batch = ledger_->grant(worker);
  return batch && ledger_->mark_trained(worker, sequence, *batch);
}

std::int64_t LeaseQueue::on_push_applied(int worker, const wire::PushT& push,
                                         std::uint64_t version) {
  WorkerRecord& record = job_.worker(worker);
  record.last_push = std::max(record.last_push, push.sequence);
  record.is_resting = false;
  if (!ledger_) return 0;
  const bool is_synchronous = job_.is_synchronous();
  const std::vector<SampleRange> batches = from_wire(push.batches);
  std::int64_t trained = 0;
  if (is_synchronous) {
    trained = count_step(worker, push.sequence) ? 1 : 0;
  } else {
    for (const SampleRange& batch : batches) {
      trained += ledger_->mark_trained(worker, push.sequence, batch) ? 1 : 0;
    }
    if (trained == 0) return 0;
  }
  // The loss of a step is the mean over its batches. Where servers sum the gradients of a step,
  // workers have divided by the number of batches already.
  const double of_step =
      job_.collects_gradients() ? static_cast<double>(job_.batches_per_step()) : 1.0;
  // Batches that were granted to another worker in the meantime count when that worker has trained
  // them.
  const auto part = [&](double sum) {
    return is_synchronous
               ? sum
               : sum * static_cast<double>(trained) / static_cast<double>(batches.size());
  };
  const bool is_displacement = job_.declaration->outer != nullptr;
  const Sums sums{part(push.loss) / of_step, part(push.metric),
                  is_displacement ? static_cast<std::int64_t>(version) - 1 : 0};
  sums_.add(sums);
  if (job_.collects_gradients()) {
    collected_.push_back({.worker = is_snapshot_begun_ ? worker : Collected::kInEverySnapshot,
                          .sequence = push.sequence,
                          .batch = {batches.front(), sums.loss, version}});
    forget_complete_collections();
  }
  if (push.num_bad > 0) count_bad(push, batches);
  if (is_snapshot_begun_) {
    pushes_since_.push_back({worker, push.sequence, sums});
  } else {
    ledger_->forget({{worker, push.sequence}});
  }
  return trained;
}

void LeaseQueue::count_bad(const wire::PushT& push, std::span<const SampleRange> batches) {
  if (push.bad_of_batches.size() != batches.size()) {
    bad_by_epoch_[batches.empty() ? 0 : batches.front().epoch] += push.num_bad;
    return;
  }
  // A round may have batches of several epochs.
  for (std::size_t i = 0; i < batches.size(); ++i) {
    bad_by_epoch_[batches[i].epoch] += push.bad_of_batches[i];
  }
}

void LeaseQueue::on_push_dropped(int worker, const wire::PushT& push) {
  WorkerRecord& record = job_.worker(worker);
  record.last_push = std::max(record.last_push, push.sequence);
  record.is_resting = false;
  if (!ledger_ || job_.is_synchronous()) return;
  for (const SampleRange& batch : from_wire(push.batches)) ledger_->give_back(worker, batch);
}

void LeaseQueue::stop(StopKind kind) {
  if (!stopped_by_) stopped_by_ = kind;
}

void LeaseQueue::advance() {
  const bool is_open = job_.phase == Job::Phase::kTraining || job_.phase == Job::Phase::kFinishing;
  if (!ledger_ || !is_open || job_.is_rolling_back || awaits_holders()) return;
  const bool are_all_answered = stopped_by_ || ledger_->all_trained();
  // While all batches are handed out, requests wait, and are not looked at.
  if (are_all_answered || !ledger_->all_handed_out()) {
    for (Request& request : requests_) {
      if (!job_.is_training(request.worker)) continue;
      if (are_all_answered) {
        finish(std::exchange(request, {request.worker, 0}));
      } else {
        grant(request);
      }
    }
    erase_answered_requests();
  }
  if (job_.declaration->outer != nullptr && ledger_->all_handed_out()) end_rounds();
  if (job_.consistency() != Consistency::kAsync) rest_idle_workers();
}

void LeaseQueue::grant(Request& request) {
  wire::LeasesT leases;
  for (; request.count > 0; --request.count) {
    const std::optional<SampleRange> batch = ledger_->grant(request.worker);
    if (!batch) break;
    leases.ranges.push_back(to_wire(*batch));
  }
  if (leases.ranges.empty()) return;
  leases.status = std::make_unique<wire::JobStatusT>(status());
  job_.send_to_worker(request.worker, std::move(leases));
}

void LeaseQueue::finish(const Request& request) {
  wire::LeasesT leases;
  leases.finished = true;
  leases.status = std::make_unique<wire::JobStatusT>(status());
  job_.send_to_worker(request.worker, std::move(leases));
  job_.worker(request.worker).is_dismissed = true;
}

void LeaseQueue::end_rounds() {
  for (Request& request : requests_) {
    if (request.knows_all_granted || !job_.is_training(request.worker)) continue;
    request.knows_all_granted = true;
    wire::LeasesT leases;
    leases.all_granted = true;
    leases.status = std::make_unique<wire::JobStatusT>(status());
    job_.send_to_worker(request.worker, std::move(leases));
  }
}

void LeaseQueue::erase_answered_requests() {
  std::erase_if(requests_, [this](const Request& request) {
    if (request.count > 0) return false;
    --job_.worker(request.worker).open_requests;
    return true;
  });
}

void LeaseQueue::rest_idle_workers() {
  // At the end of a job there are fewer batches than workers. The workers that still hold one would
  // wait for the clocks (kSsp) or the gradients (kSync) of workers that have nothing to push.
  if (!ledger_->all_handed_out() && !stopped_by_) return;
  const bool is_over = is_finished();
  for (int w = 0; w < job_.num_workers(); ++w) {
    WorkerRecord& record = job_.worker(w);
    if (record.is_resting || !job_.is_training(w)) continue;
    // A worker that was told that no batches are left does not push either, although it has no open
    // request for a batch.
    const bool has_nothing = record.open_requests > 0 || record.is_dismissed || is_over;
    if (!has_nothing || ledger_->holds_any(w)) continue;
    record.is_resting = true;
    wire::RestingT resting;
    resting.worker = w;
    resting.incarnation = record.incarnation;
    resting.sequence = record.last_push;
    job_.send_to_servers(resting);
  }
}

bool LeaseQueue::is_finished() const noexcept {
  if (!ledger_ || job_.is_synchronous() || awaits_holders()) return false;
  return ledger_->all_trained() || (stopped_by_ && !ledger_->is_any_held());
}

std::int64_t LeaseQueue::batches_trained() const {
  return batches_before(ledger_->options()) + ledger_->batches_trained();
}

std::int64_t LeaseQueue::step_after(std::int64_t batches) const {
  return start_step_ + (start_batches_of_step_ + batches) / job_.batches_per_step();
}

std::int64_t LeaseQueue::step_before(std::int64_t batches) const {
  return step_after(ledger_->batches_trained() - batches);
}

std::int64_t LeaseQueue::batches_per_epoch() const {
  return job_.declaration->dataset_size / job_.declaration->batch_size;
}

void LeaseQueue::set_staleness(double mean, std::uint64_t max) {
  staleness_mean_ = mean;
  staleness_max_ = max;
}

wire::JobStatusT LeaseQueue::status() const {
  wire::JobStatusT status;
  status.live_workers = job_.count_present();
  status.staleness_mean = staleness_mean_;
  status.staleness_max = staleness_max_;
  status.stopped_by = to_wire(stopped_by_);
  if (!rules_.empty()) status.learning_rate_factor = rules_.front();
  status.lowest_worker = job_.lowest_training().value_or(-1);
  if (!ledger_) return status;
  status.step = step_after(ledger_->batches_trained());
  status.samples = start_samples_ + ledger_->samples_trained();
  status.loss = sums_.loss;
  status.metric = sums_.metric;
  for (const auto& [epoch, count] : bad_by_epoch_) {
    status.num_bad_in_epoch = std::max(status.num_bad_in_epoch, count);
  }
  return status;
}

void LeaseQueue::begin_snapshot() {
  is_snapshot_begun_ = true;
  sums_before_ = sums_;
  pushes_since_.clear();
}

std::uint64_t LeaseQueue::collections_in(std::uint64_t version) const {
  return (version - 1) / static_cast<std::uint64_t>(job_.batches_per_step());
}

void LeaseQueue::forget_complete_collections() {
  if (is_snapshot_begun_ || collected_.empty()) return;
  const std::uint64_t complete = collections_in(collected_.back().batch.version);
  std::erase_if(collected_, [&](const Collected& one) {
    return collections_in(one.batch.version - 1) < complete;
  });
}

std::vector<CollectedBatch> LeaseQueue::collected_at(
    const std::map<WorkerId, std::uint64_t>& limits) const {
  std::vector<CollectedBatch> within;
  for (const Collected& one : collected_) {
    const auto entry = limits.find(one.worker);
    if (entry == limits.end() || one.sequence <= entry->second) within.push_back(one.batch);
  }
  if (within.empty()) return within;
  const std::uint64_t complete = collections_in(within.back().version);
  std::erase_if(within, [&](const CollectedBatch& batch) {
    return collections_in(batch.version - 1) < complete;
  });
  return within;
}

void LeaseQueue::end_snapshot() {
  is_snapshot_begun_ = false;
  for (Collected& one : collected_) one.worker = Collected::kInEverySnapshot;
  forget_complete_collections();
  std::map<WorkerId, std::uint64_t> everything;
  for (int w = 0; w < job_.num_workers(); ++w) {
    everything[w] = std::numeric_limits<std::uint64_t>::max();
  }
  ledger_->forget(everything);
}

JobProgress LeaseQueue::as_of(const std::map<WorkerId, std::uint64_t>& limits) const {
  return as_of(limits, {});
}

JobProgress LeaseQueue::as_of_last_update(const std::map<WorkerId, std::uint64_t>& limits) const {
  std::vector<SampleRange> untrained;
  double loss = 0.0;
  for (const CollectedBatch& batch : collected_at(limits)) {
    untrained.push_back(batch.samples);
    loss += batch.loss;
  }
  JobProgress progress = as_of(limits, untrained);
  progress.loss -= loss;
  return progress;
}

JobProgress LeaseQueue::as_of(const std::map<WorkerId, std::uint64_t>& limits,
                              std::span<const SampleRange> untrained) const {
  Ledger::AsOf then = ledger_->as_of(limits, untrained);
  Sums sums = is_snapshot_begun_ ? sums_before_ : sums_;
  if (is_snapshot_begun_) {
    for (const ReportedPush& push : pushes_since_) {
      const auto entry = limits.find(push.worker);
      if (entry == limits.end() || push.sequence <= entry->second) sums.add(push.sums);
    }
  }
  return {.at = {.step = step_after(then.batches_trained),
                 .samples = start_samples_ + then.samples_trained,
                 .position = std::move(then.position),
                 .rules = rules_,
                 .pushes = sums.pushes},
          .loss = sums.loss,
          .metric = sums.metric};
}

void LeaseQueue::save(const std::map<WorkerId, std::uint64_t>& limits, JobSnapshot& saved) const {
  const std::int64_t trained = ledger_->as_of(limits).batches_trained;
  saved.progress = as_of(limits);
  saved.collected = collected_at(limits);
  saved.batches_of_step = (start_batches_of_step_ + trained) % job_.batches_per_step();
  saved.batches_left = ledger_->options().total_batches - trained;
  saved.repeated_batches = repeated_batches_;
  saved.stopped_by = stopped_by_;
}

void LeaseQueue::restore(const JobSnapshot& saved) {
  LedgerOptions options = ledger_options(*job_.declaration, saved.progress.at.position);
  options.total_batches = saved.batches_left;
  ledger_.emplace(std::move(options));
  start_step_ = saved.progress.at.step;
  start_batches_of_step_ = saved.batches_of_step;
  start_samples_ = saved.progress.at.samples;
  rules_ = saved.progress.at.rules;
  sums_ = {saved.progress.loss, saved.progress.metric, saved.progress.at.pushes};
  bad_by_epoch_.clear();
  repeated_batches_ = saved.repeated_batches;
  lost_.clear();
  collected_.clear();
  for (const CollectedBatch& batch : saved.collected) collected_.push_back({.batch = batch});
  requests_.clear();
  awaits_holders_ = job_.consistency() == Consistency::kAsync;
  is_snapshot_begun_ = false;
  for (WorkerRecord& worker : job_.workers) {
    worker.is_resting = worker.is_dismissed = false;
    worker.open_requests = 0;
  }
}

}  // namespace syncopate::ps
