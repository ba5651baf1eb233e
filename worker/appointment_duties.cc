#include "worker/appointment_duties.h"

#include "worker/divergence.h"

namespace syncopate {
namespace {

DataPosition data_position(const ps::LedgerPosition& position) {
  return {.epoch = position.epoch, .offset = position.offset, .untrained = position.untrained};
}

}  // namespace

AppointmentDuties::AppointmentDuties(const AsynchronousRun& run, const TrainLoopOptions& options,
                                     const Progress& start, Replica& replica)
    : run_(run),
      options_(options),
      start_(start),
      worker_(run.workers.at(static_cast<std::size_t>(replica.index))),
      evaluator_(*replica.backend, run.graph, run.test, run.evaluation) {}

AppointmentDuties::Done AppointmentDuties::carry_out(const Appointment& appointment,
                                                     const Snapshot& copy, double epochs,
                                                     double seconds, double learning_rate,
                                                     const std::function<bool()>& stop) {
  const JobStatus& status = appointment.status;
  Done done{.progress = start_};
  done.progress.step = status.step;
  done.progress.samples = status.samples;
  done.progress.position = data_position(appointment.position);
  if (appointment.writes_checkpoint || appointment.is_final) {
    require_finite(appointment, copy, learning_rate);
  }
  if (appointment.writes_checkpoint) {
    // Skipped, it would be taken for written.
    check(!options_.checkpoint_dir.empty(), "who writes a checkpoint has a folder for it");
    const auto path = checkpoint_path(options_.checkpoint_dir, status.step);
    save_checkpoint(path, run_.graph, copy, run_.optimizer, done.progress);
    prune_checkpoints(options_.checkpoint_dir, options_.keep_checkpoints);
    done.checkpoint = path;
  }
  if (appointment.evaluates) done.test = evaluator_.run(copy, stop);
  if (done.test) {
    report({.step = status.step,
            .epoch = epochs,
            .test_loss = done.test->loss,
            .test_accuracy = done.test->accuracy,
            .samples = done.test->samples,
            .seconds = done.test->seconds,
            .trained_samples = status.samples,
            .trained_seconds = seconds});
  }
  return done;
}

void AppointmentDuties::require_finite(const Appointment& appointment, const Snapshot& copy,
                                       double learning_rate) const {
  if (all_finite(copy)) return;
  throw diverged("the weights or the optimizer's slots are no longer finite",
                 {.step = appointment.status.step,
                  .learning_rate = learning_rate,
                  .last_checkpoint = last_checkpoint(options_)});
}

void AppointmentDuties::report(const EvalMetrics& metrics) {
  worker_.metrics.write(metrics);
  worker_.display.note(describe(metrics));
}

std::optional<std::filesystem::path> last_checkpoint(const TrainLoopOptions& options) {
  if (options.checkpoint_dir.empty()) return std::nullopt;
  return newest_checkpoint(options.checkpoint_dir);
}

}  // namespace syncopate
