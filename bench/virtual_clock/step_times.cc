#include "bench/virtual_clock/step_times.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

#include "models/base/errors.h"

namespace syncopate::bench {

StepTimes::StepTimes(StepTimesOptions options, const FaultInjection& faults, std::uint64_t seed)
    : options_(std::move(options)),
      link_(faults.link),
      server_bytes_per_second_(faults.server_bytes_per_second),
      bytes_by_server_(options_.buckets.bytes_by_server()),
      total_bytes_(std::accumulate(options_.buckets.bytes.begin(), options_.buckets.bytes.end(),
                                   std::int64_t{0})),
      kills_(faults.kills),
      now_{.workers =
               std::vector<Worker>(static_cast<std::size_t>(options_.workers),
                                   {.trips = std::vector<BucketTrip>(options_.buckets.bytes.size()),
                                    .account = {.has_joined = true}}),
           .server_free = std::vector<VirtualTime>(bytes_by_server_.size()),
           .network = Network(link_, options_.workers, options_.buckets.servers()),
           .delays = ComputeDelays(faults, seed)},
      next_(now_) {
  std::ranges::sort(kills_, [](const Kill& a, const Kill& b) {
    return std::tie(a.at_seconds, a.worker) > std::tie(b.at_seconds, b.worker);
  });
}

std::vector<WorkerAccount> StepTimes::accounts() const {
  std::vector<WorkerAccount> accounts;
  for (const Worker& worker : now_.workers) accounts.push_back(worker.account);
  return accounts;
}

VirtualTime StepTimes::step(std::int64_t step, std::span<const std::int64_t> gradient_bytes) {
  const VirtualTime end = simulate(step, gradient_bytes);
  for (Worker& worker : now_.workers) worker.account.steps += steps_of_round(step);
  return end;
}

VirtualTime StepTimes::simulate(std::int64_t step, std::span<const std::int64_t> gradient_bytes) {
  for (;;) {
    next_ = now_;
    if (!options_.pipeline) compute(next_, step);
    const VirtualTime end = options_.pipeline                ? pass_stages(next_, step)
                            : options_.buckets.has_servers() ? exchange(next_, gradient_bytes)
                                                             : all_reduce(next_, step);
    if (kills_.empty() || virtual_time(kills_.back().at_seconds) >= end) {
      std::swap(now_, next_);
      return end;
    }
    const Kill kill = kills_.back();
    kills_.pop_back();
    if (!kill.restart_seconds) {
      throw PeerError(fmt::format(
          "worker {} was killed at {:g} s, in step {}: --strategy {} is synchronous, so the job "
          "ended; "
          "give restart=SECONDS to restart the worker, or choose --backup-workers, ssp or async",
          kill.worker, kill.at_seconds, step, options_.strategy));
    }
    restart_after(kill, next_);
    // After the restart the job repeats the steps since its last checkpoint. They give the same
    // values again, so only their time is simulated.
    for (std::int64_t saved = saved_before(step); end_of_round(saved + 1) < step;) {
      saved = end_of_round(saved + 1);
      simulate(saved, gradient_bytes);
    }
  }
}

// A checkpoint is written after a round in which one became due.
std::int64_t StepTimes::saved_before(std::int64_t step) const {
  const std::int64_t every = options_.checkpoint_every;
  if (every == 0) return 0;
  const std::int64_t due = (step - steps_of_round(step)) / every * every;
  return due == 0 ? 0 : end_of_round(due);
}

void StepTimes::compute(State& state, std::int64_t step) const {
  const std::int64_t first = step - steps_of_round(step) + 1;
  for (std::size_t w = 0; w < state.workers.size(); ++w) {
    Worker& worker = state.workers[w];
    worker.compute = VirtualTime(0);
    for (std::int64_t s = first; s <= step; ++s) {
      worker.compute += state.delays.take(static_cast<int>(w), s, worker.ready + worker.compute);
    }
    const StepStart start =
        start_of_step(buckets_of(step), worker.trips, worker.ready, worker.compute);
    add_wait(worker.account, worker.trips[static_cast<std::size_t>(start.last)], worker.ready,
             start.at);
    worker.started = start.at;
    worker.computed = start.at + worker.compute;
    worker.account.compute += worker.compute;
  }
}

VirtualTime StepTimes::all_reduce(State& state, std::int64_t step) const {
  const TimedBuckets& buckets = buckets_of(step);
  VirtualTime end{0};
  std::int64_t bytes = 0;
  for (BucketId b = 0; b < buckets.count(); ++b) {
    for (const Worker& worker : state.workers) {
      end = std::max(end, worker.started + buckets.completion(b, worker.compute));
    }
    end += ring_all_reduce_time(link_, options_.workers, buckets.bytes_of(b));
    bytes += ring_all_reduce_bytes(options_.workers, buckets.bytes_of(b));
  }
  VirtualTime computed{0};
  for (const Worker& worker : state.workers) computed = std::max(computed, worker.computed);
  end = std::max(end, computed);
  for (Worker& worker : state.workers) {
    worker.account.peers += computed - worker.computed;
    worker.account.communication += end - computed;
    worker.account.bytes_sent += bytes;
    worker.account.bytes_received += bytes;
    worker.ready = end;
  }
  return end;
}

// A stage waits for its neighbours, which would take less if messages took no time.
VirtualTime StepTimes::pass_stages(State& state, std::int64_t step) const {
  const PipelineLoad& load = *options_.pipeline;
  const std::size_t stages = state.workers.size();
  std::vector<VirtualTime> ready;
  for (const Worker& worker : state.workers) ready.push_back(worker.ready);
  std::vector<std::vector<VirtualTime>> computation(stages);
  std::vector<VirtualTime> busy(stages);
  for (std::size_t s = 0; s < stages; ++s) {
    for (int m = 0; m < load.micro_batches; ++m) {
      // Bursts and measured times belong to steps, so all parts of a step are alike.
      const std::int64_t drawn =
          state.delays.depends_on_order() ? step : (step - 1) * load.micro_batches + m + 1;
      computation[s].push_back(
          state.delays.take_part(static_cast<int>(s), drawn, ready[s] + busy[s], load.work[s]));
      busy[s] += computation[s].back();
    }
  }
  const VirtualTime end = end_of_pipeline_step(load, link_, ready, computation);
  const VirtualTime end_if_free =
      link_.is_plain() ? end : end_of_pipeline_step(load, {}, ready, computation);
  for (std::size_t s = 0; s < stages; ++s) {
    WorkerAccount& account = state.workers[s].account;
    const std::int64_t bytes = bytes_handed_over(load, static_cast<int>(s));
    account.compute += busy[s];
    account.peers += end_if_free - ready[s] - busy[s];
    account.communication += end - end_if_free;
    account.bytes_sent += bytes;
    account.bytes_received += bytes;
    state.workers[s].computed = state.workers[s].ready = end;
  }
  return end;
}

std::vector<StepTimes::Push> StepTimes::pushes_of(const State& state) const {
  std::vector<Push> pushes;
  for (std::size_t w = 0; w < state.workers.size(); ++w) {
    const Worker& worker = state.workers[w];
    for (BucketId b = 0; b < options_.buckets.count(); ++b) {
      pushes.push_back({worker.started + options_.buckets.completion(b, worker.compute), w, b});
    }
  }
  std::ranges::stable_sort(pushes, {}, &Push::at);
  return pushes;
}

VirtualTime StepTimes::exchange(State& state, std::span<const std::int64_t> gradient_bytes) const {
  const TimedBuckets& buckets = options_.buckets;
  std::vector<std::pair<VirtualTime, BucketId>> updates;  // when each bucket is updated
  for (BucketId b = 0; b < buckets.count(); ++b) updates.emplace_back(0, b);
  for (const auto& [at, w, bucket] : pushes_of(state)) {
    const auto b = static_cast<std::size_t>(bucket);
    Worker& worker = state.workers[w];
    const VirtualTime there =
        state.network.up(at, static_cast<int>(w), buckets.owner_of(bucket), gradient_bytes[b]);
    worker.trips[b].sent = there;
    worker.account.bytes_sent += gradient_bytes[b];
    updates[b].first = std::max(updates[b].first, there);
  }
  // A server begins an update when it has all gradients of the bucket.
  std::ranges::sort(updates);
  for (auto& [at, b] : updates) {
    VirtualTime& free = state.server_free[static_cast<std::size_t>(buckets.owner_of(b))];
    const VirtualTime time = update_time(
        server_bytes_per_second_, gradient_bytes[static_cast<std::size_t>(b)], options_.workers);
    const VirtualTime begun = at;
    at = free = std::max(free, at) + time;
    for (Worker& worker : state.workers) {
      worker.trips[static_cast<std::size_t>(b)].on_server = at - begun;
    }
  }
  answer(state, std::move(updates));
  VirtualTime end{0};
  for (Worker& worker : state.workers) {
    const BucketTrip& first = worker.trips[static_cast<std::size_t>(buckets.first_used())];
    worker.ready = std::max(first.arrived, worker.computed);
    add_wait(worker.account, first, worker.computed, worker.ready);
    for (const BucketTrip& trip : worker.trips) end = std::max(end, trip.arrived);
  }
  return end;
}

void StepTimes::answer(State& state, std::vector<std::pair<VirtualTime, BucketId>> updates) const {
  std::ranges::sort(updates);
  for (const auto& [at, bucket] : updates) {
    const std::int64_t bytes = options_.buckets.bytes_of(bucket);
    for (std::size_t w = 0; w < state.workers.size(); ++w) {
      Worker& worker = state.workers[w];
      BucketTrip& trip = worker.trips[static_cast<std::size_t>(bucket)];
      trip.answered = at;
      trip.arrived =
          state.network.down(at, options_.buckets.owner_of(bucket), static_cast<int>(w), bytes);
      worker.account.bytes_received += bytes;
    }
  }
}

void StepTimes::restart_after(const Kill& kill, const State& attempt) {
  const VirtualTime at = virtual_time(kill.at_seconds);
  const VirtualTime back = at + virtual_time(*kill.restart_seconds);
  for (std::size_t w = 0; w < now_.workers.size(); ++w) {
    Worker& worker = now_.workers[w];
    // The killed worker's computation is lost; pauses during it are used up.
    const VirtualTime computed =
        std::max(VirtualTime(0), std::min(at, attempt.workers[w].computed) -
                                     std::max(worker.ready, attempt.workers[w].started));
    const VirtualTime begins = std::max(worker.ready, back);
    worker.account.compute += computed;
    worker.account.peers += begins - worker.ready - computed;
    worker.ready = begins;
  }
  now_.delays = attempt.delays;
  for (std::size_t w = 0; w < now_.workers.size(); ++w) {
    Worker& worker = now_.workers[w];
    const VirtualTime there = w == 0 ? worker.ready : fetch(static_cast<int>(w), worker.ready);
    worker.account.communication += there - worker.ready;
    worker.ready = there;
    for (BucketTrip& trip : worker.trips) trip.arrived = there;
  }
}

VirtualTime StepTimes::fetch(int worker, VirtualTime from) {
  now_.workers[static_cast<std::size_t>(worker)].account.bytes_received += total_bytes_;
  if (!options_.buckets.has_servers()) {
    return from + delay_of(link_) + time_on_link(link_, total_bytes_);
  }
  VirtualTime there = from;
  for (std::size_t s = 0; s < bytes_by_server_.size(); ++s) {
    there =
        std::max(there, now_.network.down(from, static_cast<int>(s), worker, bytes_by_server_[s]));
  }
  return there;
}

}  // namespace syncopate::bench
