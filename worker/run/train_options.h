// What a training run is asked to do: the command line, a config file or a comparison fills this
// in.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "models/optim/schedule.h"
#include "strategies/cluster/cluster_spec.h"
#include "strategies/cluster/membership.h"
#include "strategies/strategy.h"
#include "worker/input/batch_source.h"
#include "worker/train/train_loop.h"

namespace syncopate {

// By what the learning rate is multiplied: 1, a power of global batch / reference batch, or
// 1 / workers.
enum class LearningRateScale : std::uint8_t { kNone, kLinear, kSqrt, kInverseWorkers };

struct TrainOptions {
  std::string model = "mnist-cnn";
  std::string data = "digits";
  StrategyOptions strategy;  // its seed is everybody's
  ClusterSpec cluster;
  bool takes_own_gpus = false;  // --devices cuda: which ones follows where the task runs
  bool has_own_cpus = false;    // shared with no other task
  bool shares_devices = false;  // several replicas share one on purpose
  std::chrono::milliseconds rendezvous_timeout{0};
  std::chrono::milliseconds peer_timeout{0};  // 0: by where the tasks are
  std::int64_t global_batch_size = 0;         // 0: batch_size_per_replica times the replicas
  LearningRateScale learning_rate_scale = LearningRateScale::kNone;
  std::int64_t reference_batch_size = 0;  // 0: one replica's batch
  InputOptions input;                     // batch size and seed are the strategy's
  ScheduleOptions schedule;               // total_epochs: known once the data is
  TrainLoopOptions loop;
  bool resume = false;
  bool deterministic = false;
  bool show_progress = true;
  std::filesystem::path init_from;  // empty: the seed's first values
  std::filesystem::path metrics;    // empty: none
  std::filesystem::path cache_dir;
  // Of servers.
  std::vector<Agreement> served_as;  // what all workers must have said alike
  std::chrono::milliseconds snapshot_interval = std::chrono::seconds(10);
  std::filesystem::path record;  // empty: none
};

}  // namespace syncopate
