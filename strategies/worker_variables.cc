#include "strategies/worker_variables.h"

#include "strategies/collective/work_progress.h"

namespace syncopate {
namespace {

class WorkerVariables final : public VariableStore {
 public:
  WorkerVariables(Replica& replica, ShardTransport& transport, int lanes)
      : replica_(replica), transport_(transport), lanes_(lanes) {}

  // Asks for nothing: the push of the step before has already asked for the values.
  void pull(const UpdateStep& update) override { update_ = update; }

  void wait_values(BucketId bucket) override {
    {
      const Stopwatch::Exposed exposed(watch_);
      transport_.wait_values(bucket);
    }
    replica_.arena->bump_version(bucket);
  }

  void push(BucketId bucket, const StepReport& report) override {
    if (bucket == 0) begin_step(report);
    watch_.begin();
    const Stopwatch::Exposed exposed(watch_);
    transport_.push(bucket);
  }

  StepReport commit() override {
    const Stopwatch::Exposed exposed(watch_);
    return transport_.finish_step().value_or(report_);
  }

  CommunicationTimes times() const override { return transport_.with_traffic(watch_.times()); }

 private:
  void begin_step(const StepReport& report) {
    report_ = report;
    transport_.begin_step({.learning_rate = update_.learning_rate,
                           .batch = {},
                           .lanes = lanes_,
                           .loss = report.scores.loss,
                           .correct = report.scores.num_correct,
                           .samples = report.scores.num_samples,
                           .stops = report.stops,
                           .state = replica_.state->values.f32()});
    watch_.end();  // all answers to the last step's pushes have arrived
  }

  Replica& replica_;
  ShardTransport& transport_;
  const int lanes_;
  UpdateStep update_;
  StepReport report_;
  Stopwatch watch_;
};

}  // namespace

std::unique_ptr<VariableStore> make_worker_variables(Replica& replica, ShardTransport& transport,
                                                     int lanes) {
  return std::make_unique<WorkerVariables>(replica, transport, lanes);
}

}  // namespace syncopate
