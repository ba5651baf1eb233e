#include "ps/coordinator/lease_queue.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "models/base/errors.h"
#include "ps/coordinator/wire_conversion.h"

namespace syncopate::ps {
namespace {

SampleRange range_of(const wire::PushT& push) {
  return push.batch == nullptr ? SampleRange{} : from_wire(*push.batch);
}

// Batches that one request asks for, at most; of more it gets no more than these.
constexpr int kMostAtOnce = 1024;

// Batches of the steps that are left.
std::int64_t batches_of_steps(std::int64_t total_steps, std::int64_t done, std::int64_t per_step) {
  if (total_steps < 0 || done < 0 ||
      total_steps > std::numeric_limits<std::int64_t>::max() / per_step) {
    throw UsageError("step " + std::to_string(done) + " of " + std::to_string(total_steps) + ", " +
                     std::to_string(per_step) +
                     " batches each: these cannot be counted; look at --steps and the checkpoint");
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
  Ledger fits(options);  // before anybody divides by a batch of nothing
  options.total_batches =
      declaration.total_epochs > 0
          ? batches_left(options, declaration.total_epochs)
          : batches_of_steps(declaration.total_steps, start.step, job_.batches_per_step());
  ledger_.emplace(std::move(options));
  start_step_ = start.step;
  start_samples_ = start.samples;
}

void LeaseQueue::request(int worker, int count) {
  if (job_.is_in_step() || count < 1) return;
  requests_.push_back({worker, std::min(count, kMostAtOnce)});
}

void LeaseQueue::lose(int worker) {
  std::erase_if(requests_, [&](const Request& request) { return request.worker == worker; });
  dismissed_.erase(worker);
  if (ledger_) ledger_->give_back(worker);
}

void LeaseQueue::keep(int worker, std::span<const SampleRange> held) {
  if (ledger_) ledger_->keep(worker, held);
}

bool LeaseQueue::count_step(int worker, std::uint64_t sequence) {
  // A step of workers in step is one, however many push.
  if (worker != 0) return false;
  const std::optional<SampleRange> batch = ledger_->grant(worker);
  return batch && ledger_->trained(worker, sequence, *batch);
}

bool LeaseQueue::trained(int worker, const wire::PushT& push) {
  WorkerRecord& record = job_.worker(worker);
  record.heard = std::max(record.heard, push.sequence);
  record.is_resting = false;
  if (!ledger_) return false;
  const bool is_in_step = job_.is_in_step();
  const bool counts = is_in_step ? count_step(worker, push.sequence)
                                 : ledger_->trained(worker, push.sequence, range_of(push));
  if (!counts && !is_in_step) return false;
  const Sums sums{push.loss, push.correct};
  sums_.add(sums);
  if (remembers_) {
    heard_.push_back({worker, push.sequence, sums});
  } else {
    ledger_->forget({{worker, push.sequence}});
  }
  return counts;
}

void LeaseQueue::dropped(int worker, const wire::PushT& push) {
  WorkerRecord& record = job_.worker(worker);
  record.heard = std::max(record.heard, push.sequence);
  record.is_resting = false;
  if (ledger_ && !job_.is_in_step()) ledger_->give_back(worker, range_of(push));
}

void LeaseQueue::stop(StopKind kind) {
  if (!stopped_by_) stopped_by_ = kind;
}

void LeaseQueue::advance() {
  const bool is_open = job_.phase == Job::Phase::kTraining || job_.phase == Job::Phase::kFinishing;
  if (!ledger_ || !is_open || job_.is_rolling_back) return;
  for (Request& request : requests_) {
    if (!job_.is_training(request.worker)) continue;
    if (stopped_by_ || ledger_->all_trained()) {
      finish(std::exchange(request, {request.worker, 0}));
    } else {
      grant(request);
    }
  }
  std::erase_if(requests_, [](const Request& request) { return request.count == 0; });
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
  job_.tell_worker(request.worker, std::move(leases));
}

void LeaseQueue::finish(const Request& request) {
  wire::LeasesT leases;
  leases.finished = true;
  leases.status = std::make_unique<wire::JobStatusT>(status());
  job_.tell_worker(request.worker, std::move(leases));
  dismissed_.insert(request.worker);
}

bool LeaseQueue::is_waiting(int worker) const {
  return dismissed_.contains(worker) ||
         std::any_of(requests_.begin(), requests_.end(),
                     [&](const Request& request) { return request.worker == worker; });
}

void LeaseQueue::rest_idle_workers() {
  // The last batches of a job are fewer than workers. Under kSsp those that have one would wait for
  // clocks that stand still, under kSync for gradients that nobody computes.
  if (!ledger_->all_handed_out() && !stopped_by_) return;
  for (int w = 0; w < job_.num_workers(); ++w) {
    WorkerRecord& record = job_.worker(w);
    // Whoever is told that there is no more pushes nothing either, though it asks for nothing.
    const bool has_nothing = is_waiting(w) || is_finished();
    if (!job_.is_training(w) || record.is_resting || ledger_->holds_any(w) || !has_nothing) {
      continue;
    }
    record.is_resting = true;
    wire::RestingT resting;
    resting.worker = w;
    resting.incarnation = record.incarnation;
    resting.sequence = record.heard;
    job_.tell_servers(resting);
  }
}

bool LeaseQueue::is_finished() const noexcept {
  if (!ledger_ || job_.is_in_step()) return false;
  return ledger_->all_trained() || (stopped_by_ && !ledger_->is_any_held());
}

std::int64_t LeaseQueue::batches_trained() const {
  return batches_before(ledger_->options()) + ledger_->batches_trained();
}

std::int64_t LeaseQueue::step_after(std::int64_t batches) const {
  return start_step_ + (start_batches_of_step_ + batches) / job_.batches_per_step();
}

bool LeaseQueue::has_ended_step() const {
  return (start_batches_of_step_ + ledger_->batches_trained()) % job_.batches_per_step() == 0;
}

std::int64_t LeaseQueue::batches_per_epoch() const {
  return job_.declaration->dataset_size / job_.declaration->batch_size;
}

void LeaseQueue::note_staleness(double mean, std::uint64_t max) {
  staleness_mean_ = mean;
  staleness_max_ = max;
}

wire::JobStatusT LeaseQueue::status() const {
  wire::JobStatusT status;
  status.live_workers = job_.count_present();
  status.staleness_mean = staleness_mean_;
  status.staleness_max = staleness_max_;
  status.stopped_by = to_wire(stopped_by_);
  status.lowest_worker = job_.lowest_training().value_or(-1);
  if (!ledger_) return status;
  status.step = step_after(ledger_->batches_trained());
  status.samples = start_samples_ + ledger_->samples_trained();
  status.loss = sums_.loss;
  status.correct = sums_.correct;
  return status;
}

void LeaseQueue::begin_cut() {
  remembers_ = true;
  sums_before_ = sums_;
  heard_.clear();
}

void LeaseQueue::end_cut() {
  remembers_ = false;
  std::map<WorkerId, std::uint64_t> everything;
  for (int w = 0; w < job_.num_workers(); ++w) {
    everything[w] = std::numeric_limits<std::uint64_t>::max();
  }
  ledger_->forget(everything);
}

JobProgress LeaseQueue::progress_of(const Ledger& ledger,
                                    const std::map<WorkerId, std::uint64_t>& cut) const {
  Ledger::AsOf then = ledger.as_of(cut);
  Sums sums = remembers_ ? sums_before_ : sums_;
  if (remembers_) {
    for (const Heard& push : heard_) {
      const auto entry = cut.find(push.worker);
      if (entry == cut.end() || push.sequence <= entry->second) sums.add(push.sums);
    }
  }
  return {.at = {.step = step_after(then.batches_trained),
                 .samples = start_samples_ + then.samples_trained,
                 .position = std::move(then.position)},
          .loss = sums.loss,
          .correct = sums.correct};
}

void LeaseQueue::save(const std::map<WorkerId, std::uint64_t>& cut, SavedJob& saved) const {
  Ledger ledger = *ledger_;
  const auto first = cut.find(0);
  if (job_.is_in_step() && first != cut.end()) {
    for (std::uint64_t step = job_.worker(0).heard; step < first->second; ++step) {
      const std::optional<SampleRange> batch = ledger.grant(0);
      if (batch) ledger.trained(0, step + 1, *batch);
    }
  }
  const std::int64_t trained = ledger.as_of(cut).batches_trained;
  saved.progress = progress_of(ledger, cut);
  saved.batches_of_step = (start_batches_of_step_ + trained) % job_.batches_per_step();
  saved.batches_left = ledger.options().total_batches - trained;
  saved.stopped_by = stopped_by_;
}

void LeaseQueue::restore(const SavedJob& saved) {
  LedgerOptions options = ledger_options(*job_.declaration, saved.progress.at.position);
  options.total_batches = saved.batches_left;
  ledger_.emplace(std::move(options));
  start_step_ = saved.progress.at.step;
  start_batches_of_step_ = saved.batches_of_step;
  start_samples_ = saved.progress.at.samples;
  sums_ = {saved.progress.loss, saved.progress.correct};
  requests_.clear();
  dismissed_.clear();
  remembers_ = false;
  for (WorkerRecord& worker : job_.workers) worker.is_resting = false;
}

}  // namespace syncopate::ps
