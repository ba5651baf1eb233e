// `syncopate doctor`: the tasks of a job meet and exchange reports about themselves before any
// training, and the first task prints what is wrong.
#include <fmt/format.h>

#include <algorithm>
#include <ostream>

#include "deploy/commands/commands.h"
#include "deploy/doctor/diagnosis.h"
#include "deploy/doctor/inspection.h"
#include "models/base/errors.h"
#include "models/base/secret.h"
#include "strategies/cluster/prepare_rendezvous.h"
#include "worker/run/job_membership.h"
#include "worker/run/run_devices.h"
#include "worker/run/run_sizes.h"
#include "worker/train/metrics.h"

namespace syncopate {
namespace {

// Returns a cluster that counts the servers as tasks, too, with the rendezvous of the training.
ClusterSpec one_world(const ClusterSpec& spec) {
  ClusterSpec world = spec;
  world.role = Role::kWorker;
  world.index = spec.role == Role::kServer ? spec.index : spec.num_servers + spec.index;
  world.world_size = spec.num_servers + spec.world_size;
  world.num_servers = 0;
  world.worker_places = spec.server_places;
  world.worker_places.insert(world.worker_places.end(), spec.worker_places.begin(),
                             spec.worker_places.end());
  world.server_places.clear();
  return world;
}

JobUnderTest job_of(const TrainOptions& options) {
  return {.strategy = options.strategy.name,
          .collective = options.strategy.collective,
          .devices = options.strategy.devices.front().kind == DeviceKind::kCuda ? "cuda" : "cpu",
          .tasks = options.cluster.world_size + options.cluster.num_servers,
          .replicas = expected_replicas(options),
          .global_batch = options.global_batch_size,
          .shares_devices = options.shares_devices,
          .checkpoint_dir = options.loop.checkpoint_dir.string(),
          .notes = options.cluster.notes};
}

std::vector<TaskReport> exchange_reports(const TrainOptions& options, Membership& membership,
                                         TaskReport mine) {
  // The chief creates a file of this name, and all tasks look for it in the checkpoint folder. The
  // name must not tell the job's nonce.
  const std::string token = ".doctor-" + name_of_nonce(membership.nonce());
  const bool is_chief = membership.index() == 0;
  const FolderToken chiefs(is_chief ? options.loop.checkpoint_dir : "", token);
  if (is_chief && chiefs.has_failed() && mine.folder_problem.empty()) {
    mine.folder_problem = "cannot write to " + options.loop.checkpoint_dir.string();
  }
  membership.exchange("");  // after this exchange, the chief's file exists
  mine.clock_seconds = wall_clock_seconds();
  if (!options.loop.checkpoint_dir.empty() && mine.folder_problem.empty()) {
    mine.sees_chiefs_file = sees_token(options.loop.checkpoint_dir, token);
  }
  std::vector<TaskReport> reports;
  for (const std::string& text : membership.exchange(encode(mine))) {
    reports.push_back(decode_task_report(text));
  }
  return reports;
}

}  // namespace

int run_doctor(const DoctorOptions& asked, MpiSession* mpi, std::ostream& out) {
  TrainOptions options = asked.train;
  if (options.cluster.role == Role::kEvaluator) {
    out << "an evaluator only reads checkpoints; run doctor as another task" << std::endl;
    return 0;
  }
  if (options.takes_every_device) {
    try {
      find_devices(options);  // the number of replicas follows from the GPUs
    } catch (const Error&) {
      // inspect_devices() reports it.
    }
  }
  const JobUnderTest job = job_of(options);
  TaskReport mine = inspect_task(options, asked.environment);
  std::vector<TaskReport> reports;
  const auto nonce_file = share_nonce(options.cluster, options.rendezvous_timeout);
  prepare_rendezvous(options.cluster);
  const ClusterSpec world = one_world(with_rendezvous(options, mpi));
  if (world.world_size > 1) {
    const auto listens_first = std::chrono::seconds(has_servers(options) ? 1 : 0);
    std::unique_ptr<Membership> membership;
    try {
      membership = join_cluster(world, {.rendezvous_timeout = options.rendezvous_timeout,
                                        .peer_timeout = options.peer_timeout,
                                        .listens_first = listens_first});
    } catch (const Error&) {
      inspect_devices(options, nullptr, mine);
      reports.push_back(mine);
      // Without a membership, the report covers this task only.
      out << describe(diagnose(job, reports)) << std::flush;
      throw;
    }
    // In a job with servers the tasks do not compare which GPUs they see before training, so doctor
    // passes no membership.
    inspect_devices(options, has_servers(options) ? nullptr : membership.get(), mine);
    reports = exchange_reports(options, *membership, mine);
    membership->leave();
  } else {
    inspect_devices(options, nullptr, mine);
    reports.push_back(mine);
  }
  if (world.index != 0) return has_errors(diagnose(job, reports)) ? 1 : 0;
  const std::vector<Finding> findings = diagnose(job, reports);
  out << describe(findings) << std::flush;
  return has_errors(findings) ? 1 : 0;
}

}  // namespace syncopate
