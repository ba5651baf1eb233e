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
      total_bytes_(std::accumulate(options_.value_bytes.begin(), options_.value_bytes.end(),
                                   std::int64_t{0})),
      kills_(faults.kills),
      now_{.network =
               Network(link_, options_.workers, static_cast<int>(options_.value_bytes.size())),
           .delays = ComputeDelays(faults, seed)},
      next_(now_) {
  const auto n = static_cast<std::size_t>(options_.workers);
  now_.ready.resize(n);
  now_.computed.resize(n);
  now_.accounts.resize(n);
  for (WorkerAccount& account : now_.accounts) account.has_joined = true;
  std::ranges::sort(kills_, [](const Kill& a, const Kill& b) {
    return std::tie(a.at_seconds, a.worker) > std::tie(b.at_seconds, b.worker);
  });
}

VirtualTime StepTimes::step(std::int64_t step, std::span<const std::int64_t> gradient_bytes) {
  const VirtualTime end = simulate(step, gradient_bytes);
  for (WorkerAccount& account : now_.accounts) ++account.steps;
  return end;
}

VirtualTime StepTimes::simulate(std::int64_t step, std::span<const std::int64_t> gradient_bytes) {
  for (;;) {
    next_ = now_;
    if (!options_.pipeline) compute(next_, step);
    const VirtualTime end = options_.pipeline      ? pass_stages(next_, step)
                            : options_.has_servers ? exchange(next_, gradient_bytes)
                                                   : all_reduce(next_);
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
    const std::int64_t every = options_.checkpoint_every;
    const std::int64_t saved = every > 0 ? (step - 1) / every * every : 0;
    // After the restart the job repeats the steps since its last checkpoint. They give the same
    // values again, so only their time is simulated.
    for (std::int64_t lost = saved + 1; lost < step; ++lost) simulate(lost, gradient_bytes);
  }
}

void StepTimes::compute(State& state, std::int64_t step) const {
  for (std::size_t w = 0; w < state.ready.size(); ++w) {
    const VirtualTime time = state.delays.take(static_cast<int>(w), step, state.ready[w]);
    state.computed[w] = state.ready[w] + time;
    state.accounts[w].compute += time;
  }
}

VirtualTime StepTimes::all_reduce(State& state) const {
  const VirtualTime begin = *std::ranges::max_element(state.computed);
  const VirtualTime time = ring_all_reduce_time(link_, options_.workers, total_bytes_);
  const std::int64_t bytes = ring_all_reduce_bytes(options_.workers, total_bytes_);
  for (std::size_t w = 0; w < state.ready.size(); ++w) {
    WorkerAccount& account = state.accounts[w];
    account.peers += begin - state.computed[w];
    account.communication += time;
    account.bytes_sent += bytes;
    account.bytes_received += bytes;
    state.ready[w] = begin + time;
  }
  return begin + time;
}

// A stage waits for its neighbours, which would take less if messages took no time.
VirtualTime StepTimes::pass_stages(State& state, std::int64_t step) const {
  const PipelineLoad& load = *options_.pipeline;
  const std::size_t stages = state.ready.size();
  std::vector<std::vector<VirtualTime>> computation(stages);
  std::vector<VirtualTime> busy(stages);
  for (std::size_t s = 0; s < stages; ++s) {
    for (int m = 0; m < load.micro_batches; ++m) {
      const std::int64_t drawn = (step - 1) * load.micro_batches + m + 1;
      computation[s].push_back(state.delays.take_part(static_cast<int>(s), drawn,
                                                      state.ready[s] + busy[s], load.work[s]));
      busy[s] += computation[s].back();
    }
  }
  const VirtualTime end = end_of_pipeline_step(load, link_, state.ready, computation);
  const VirtualTime end_if_free =
      link_.is_plain() ? end : end_of_pipeline_step(load, {}, state.ready, computation);
  for (std::size_t s = 0; s < stages; ++s) {
    WorkerAccount& account = state.accounts[s];
    const std::int64_t bytes = bytes_handed_over(load, static_cast<int>(s));
    account.compute += busy[s];
    account.peers += end_if_free - state.ready[s] - busy[s];
    account.communication += end - end_if_free;
    account.bytes_sent += bytes;
    account.bytes_received += bytes;
    state.computed[s] = state.ready[s] = end;
  }
  return end;
}

VirtualTime StepTimes::exchange(State& state, std::span<const std::int64_t> gradient_bytes) const {
  const std::size_t workers = state.ready.size();
  const std::size_t servers = options_.value_bytes.size();
  std::vector<std::size_t> order(workers);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t w) { return state.computed[w]; });
  std::vector<std::pair<VirtualTime, std::size_t>> updates(
      servers);  // update's time, server number
  for (std::size_t s = 0; s < servers; ++s) updates[s].second = s;
  std::vector<VirtualTime> sent(workers);  // when a worker's whole gradient has arrived
  for (const std::size_t w : order) {
    WorkerAccount& account = state.accounts[w];
    for (std::size_t i = 0; i < servers; ++i) {
      const std::size_t s = (w + i) % servers;  // each worker begins with another server
      const VirtualTime there = state.network.up(state.computed[w], static_cast<int>(w),
                                                 static_cast<int>(s), gradient_bytes[s]);
      updates[s].first = std::max(updates[s].first, there);
      sent[w] = std::max(sent[w], there);
      account.bytes_sent += gradient_bytes[s];
    }
  }
  // A server begins its update when it has all gradients.
  for (auto& [at, s] : updates) {
    at += update_time(options_.server_bytes_per_second, gradient_bytes[s], options_.workers);
  }
  std::ranges::sort(updates);
  const VirtualTime answered = updates.back().first;
  const VirtualTime update = update_time(options_.server_bytes_per_second,
                                         gradient_bytes[updates.back().second], options_.workers);
  VirtualTime end{0};
  for (std::size_t w = 0; w < workers; ++w) state.ready[w] = VirtualTime(0);
  for (const auto& [at, s] : updates) {
    for (std::size_t w = 0; w < workers; ++w) {
      const VirtualTime there =
          state.network.down(at, static_cast<int>(s), static_cast<int>(w), options_.value_bytes[s]);
      state.ready[w] = std::max(state.ready[w], there);
      state.accounts[w].bytes_received += options_.value_bytes[s];
      end = std::max(end, there);
    }
  }
  for (std::size_t w = 0; w < workers; ++w) {
    const VirtualTime waited = answered - sent[w];
    const VirtualTime on_server = std::min(waited, update);
    state.accounts[w].servers += on_server;
    state.accounts[w].peers += waited - on_server;
    state.accounts[w].communication += state.ready[w] - state.computed[w] - waited;
  }
  return end;
}

void StepTimes::restart_after(const Kill& kill, const State& attempt) {
  const VirtualTime at = virtual_time(kill.at_seconds);
  const VirtualTime back = at + virtual_time(*kill.restart_seconds);
  for (std::size_t w = 0; w < now_.ready.size(); ++w) {
    // The killed worker's computation is lost; pauses during it are used up.
    const VirtualTime computed = std::clamp(at, now_.ready[w], attempt.computed[w]) - now_.ready[w];
    const VirtualTime begins = std::max(now_.ready[w], back);
    now_.accounts[w].compute += computed;
    now_.accounts[w].peers += begins - now_.ready[w] - computed;
    now_.ready[w] = begins;
  }
  now_.delays = attempt.delays;
  for (std::size_t w = 1; w < now_.ready.size(); ++w) {
    const VirtualTime there = fetch(static_cast<int>(w), now_.ready[w]);
    now_.accounts[w].communication += there - now_.ready[w];
    now_.ready[w] = there;
  }
}

VirtualTime StepTimes::fetch(int worker, VirtualTime from) {
  now_.accounts[static_cast<std::size_t>(worker)].bytes_received += total_bytes_;
  if (!options_.has_servers) return from + delay_of(link_) + time_on_link(link_, total_bytes_);
  VirtualTime there = from;
  for (std::size_t s = 0; s < options_.value_bytes.size(); ++s) {
    there = std::max(there,
                     now_.network.down(from, static_cast<int>(s), worker, options_.value_bytes[s]));
  }
  return there;
}

}  // namespace syncopate::bench
