// A replica's view of a LocalJob: what the asynchronous loop asks, and the batch that its variables
// must name with their pushes.
#pragma once

#include <optional>

#include "strategies/asynchronous_job.h"
#include "strategies/local_job.h"

namespace syncopate {

class LocalWorker final : public AsynchronousJob {
 public:
  // Job and replica outlive it.
  LocalWorker(LocalJob& job, Replica& replica)
      : job_(job), replica_(replica), worker_(replica.index) {}

  const ps::SampleRange& batch() const noexcept { return batch_; }  // of the step under way

  std::optional<ps::SampleRange> next_lease() override { return job_.next_lease(worker_); }
  void begin_step(const ps::SampleRange& batch) override { batch_ = batch; }
  JobStatus status() const override { return job_.status(); }
  // No replica of a process is lost alone, so the lowest is the first.
  bool speaks() const override { return worker_ == 0; }
  std::optional<Appointment> appointment() override { return job_.appointment(worker_); }
  std::optional<Appointment> wait_appointment() override { return job_.wait_appointment(worker_); }
  Snapshot read_cut(const Appointment& appointment, bool with_slots) override;
  void done(const Appointment& appointment) override { job_.done(worker_, appointment.cut); }
  void refresh() override;
  void request_stop(ps::StopKind kind) override { job_.request_stop(worker_, kind); }

 private:
  LocalJob& job_;
  Replica& replica_;
  const int worker_;
  ps::SampleRange batch_;
};

}  // namespace syncopate
