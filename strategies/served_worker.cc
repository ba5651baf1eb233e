#include "strategies/served_worker.h"

#include <algorithm>
#include <string>

#include "models/base/errors.h"
#include "models/optim/optimizer.h"
#include "ps/coordinator/wire_conversion.h"
#include "strategies/collective/stopwatch.h"
#include "strategies/job_messages.h"

namespace syncopate {
namespace {

class ServedVariableStore final : public VariableStore {
 public:
  ServedVariableStore(Replica& replica, ps::Client& client, const StepContext& context,
                      const StrategyOptions& options)
      : replica_(replica),
        client_(client),
        context_(context),
        lanes_(options.lanes),
        in_step_(keeps_step(options.consistency)) {}

  // The values are on their way: they were asked for with the last push.
  void pull(const UpdateStep& update) override { update_ = update; }

  void wait_values(BucketId bucket) override {
    {
      const Stopwatch::Exposed exposed(watch_);
      client_.wait_values(bucket);
    }
    replica_.arena->bump_version(bucket);
  }

  void report(const StepReport& mine) override {
    report_ = mine;
    client_.begin_step(
        {.learning_rate = update_.learning_rate,
         .batch = context_.batch,
         .lanes = lanes_,
         .loss = mine.scores.loss,
         .correct = mine.scores.num_correct,
         .samples = mine.scores.num_samples,
         .stops = mine.stops,
         .state = in_step_ ? std::span<const float>() : replica_.state->values.f32()});
    watch_.end();
  }

  void push(BucketId bucket) override {
    watch_.begin();
    client_.push(bucket);
  }

  StepReport commit() override {
    StepReport total = report_;
    if (in_step_) {
      const Stopwatch::Exposed exposed(watch_);
      const ps::wire::StepSumsT sums = client_.finish_step();
      total.scores = {sums.loss, sums.correct, sums.samples};
      total.stops = ps::stop_counts_from_wire(sums.stops);
    } else {
      client_.finish_step();
    }
    return total;
  }

  CommunicationTimes times() const override {
    CommunicationTimes times = watch_.times();
    const ps::Client::Traffic traffic = client_.traffic();
    times.bytes_sent = traffic.bytes_pushed;
    times.bytes_received = traffic.bytes_pulled;
    // What the next step hides is not waited for.
    times.peers_wait_seconds = std::min(traffic.peers_wait_seconds, times.exposed_seconds);
    return times;
  }

 private:
  Replica& replica_;
  ps::Client& client_;
  const StepContext& context_;
  const int lanes_;
  const bool in_step_;
  UpdateStep update_;
  StepReport report_;
  Stopwatch watch_;
};

class ServedJob final : public AsynchronousJob {
 public:
  ServedJob(Replica& replica, ps::Client& client, StepContext& context,
            const StrategyOptions& options)
      : replica_(replica),
        client_(client),
        context_(context),
        index_(options.parameter_server.cluster.index),
        optimizer_(make_optimizer(options.optimizer)) {}

  std::optional<ps::SampleRange> next_lease() override { return client_.next_lease(); }
  void begin_step(const ps::SampleRange& batch) override { context_.batch = batch; }
  JobStatus status() const override { return job_status_of(client_.status()); }
  bool speaks() const override { return client_.status().lowest_worker == index_; }

  std::optional<Appointment> appointment() override {
    const auto next = client_.assignment();
    return next ? std::optional(appointment_of(*next)) : std::nullopt;
  }
  std::optional<Appointment> wait_appointment() override {
    // The shards still write to this worker's memory until the last answers have come.
    client_.flush();
    const auto next = client_.wait_assignment();
    return next ? std::optional(appointment_of(*next)) : std::nullopt;
  }

  Snapshot read_cut(const Appointment& appointment, bool with_slots) override {
    Snapshot copy;
    copy.values = make_host_tensor(replica_.arena->values().shape(), DType::kF32);
    std::vector<std::span<float>> slots;
    if (with_slots) {
      for (const std::string_view name : optimizer_->slot_names()) {
        copy.slots.push_back(
            {std::string(name), make_host_tensor(copy.values.shape(), DType::kF32)});
        slots.push_back(copy.slots.back().values.f32());
      }
    }
    client_.read_snapshot(appointment.cut, copy.values.f32(), slots);
    copy.state = make_host_tensor(replica_.state->values.shape(), DType::kF32);
    const std::vector<float> state = client_.read_snapshot_state(appointment.cut);
    check(state.size() == copy.state.f32().size(), "running statistics of this network");
    std::ranges::copy(state, copy.state.f32().begin());
    return copy;
  }

  void done(const Appointment& appointment) override {
    client_.complete_assignment(appointment.cut);
  }
  void refresh() override {
    client_.flush();  // what is still on its way would not be asked for again
    client_.pull();
  }
  void request_stop(ps::StopKind kind) override { client_.request_stop(kind); }

 private:
  Replica& replica_;
  ps::Client& client_;
  StepContext& context_;
  const int index_;
  const std::unique_ptr<Optimizer> optimizer_;
};

}  // namespace

std::unique_ptr<VariableStore> make_served_variables(Replica& replica, ps::Client& client,
                                                     const StepContext& context,
                                                     const StrategyOptions& options) {
  return std::make_unique<ServedVariableStore>(replica, client, context, options);
}

std::unique_ptr<AsynchronousJob> make_served_job(Replica& replica, ps::Client& client,
                                                 StepContext& context,
                                                 const StrategyOptions& options) {
  return std::make_unique<ServedJob>(replica, client, context, options);
}

}  // namespace syncopate
