#include "bench/compare/cluster_flags.h"

#include "worker/train/service_time.h"

namespace syncopate::bench {

void declare_cluster_flags(FlagSet& flags, ClusterFlags& cluster, std::string& slow_worker) {
  flags.begin_group("Fault injection, equal for all variants");
  flags.add("--service-time", &cluster.service_time,
            "delay of a step, with a mean of MS milliseconds: " + std::string(kServiceTimeForms) +
                ", as described in `syncopate train --help`. With --clock real, a worker computes "
                "the step and also sleeps for the delay (pipeline does not support this). With "
                "--clock virtual, the delay is the whole compute time of a step, unless --costs "
                "adds to it",
            {.value = "DELAY",
             .default_text = "none; constant:1 with --clock virtual and no step time in --costs"});
  flags.add(
      "--costs", &cluster.costs,
      "with --clock virtual: times of a machine that are added to the simulated times. step: "
      "computation of a step with --batch-size-per-replica samples; update: rate at which a server "
      "applies gradients; message: time of a message of any size; copy: rate at which messages are "
      "copied. Fields may be left out. `syncopate-bench plan` prints step and update of this "
      "machine. "
      "`message` is half of the time that `syncopate-bench ps` prints for a small size",
      {.value = "step=TIME,update=RATE,message=TIME,copy=RATE", .default_text = "none"});
  flags.add("--slow", &cluster.slow, "multiply the compute delay (--service-time) of worker W by F",
            {.value = "worker=W,factor=F", .repeats = true});
  flags.add("--slow-worker", &slow_worker,
            "slowdown factor, such as 4x, of the worker with the highest index; equivalent to "
            "--slow with this index",
            {.value = "FACTORx"});
  flags.add("--pause", &cluster.pauses,
            "pause worker W once. `at` is the time after the first step of the worker, `for` is "
            "the duration of the pause",
            {.value = "worker=W,at=TIME,for=TIME", .repeats = true});
  flags.add("--kill", &cluster.kills,
            "kill worker W with SIGKILL; example: worker=1,at=5s,restart=2s. `at` is the time from "
            "the start of training to the kill, `restart` the time from the kill to the restart. "
            "Without restart=TIME, the worker is not restarted",
            {.value = "worker=W,at=TIME[,restart=TIME]", .repeats = true});
  flags.add("--join", &cluster.joins,
            "start worker W later; `at` is the time after the start of the servers and of the "
            "other workers. Only for parameter-server under async or ssp",
            {.value = "worker=W,at=TIME", .repeats = true});
  flags.add(
      "--link-delay", &cluster.link_delay,
      "one-way delay of messages between tasks, such as 1ms. With a delay, runs with --clock real "
      "use TCP. Strategies that run in one process have no links, so no delay applies to them",
      {.value = "TIME", .default_text = "none"});
  flags.add("--link-rate", &cluster.link_rate,
            "limit that is imposed on each task's data rate, in each direction, such as 1gbit",
            {.value = "RATE", .default_text = "unlimited"});
}

}  // namespace syncopate::bench
