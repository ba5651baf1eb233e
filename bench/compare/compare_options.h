// What `syncopate-bench compare` was asked for.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "bench/compare/train_flags.h"
#include "bench/compare/variant.h"
#include "bench/harness/fault_injection.h"

namespace syncopate::bench {

enum class Clock : std::uint8_t {
  kReal,     // processes on this machine, started by syncopate launch
  kVirtual,  // simulated time; the same numbers on every machine
};

enum class Budget : std::uint8_t {
  kSamples,  // every variant trains the same samples: --epochs
  kUpdates,  // every variant applies as many updates: --updates
  kSeconds,  // every variant trains as long: --seconds
};

struct CompareOptions {
  std::vector<Variant> variants;
  std::vector<std::string> left_out;  // of the default ones, without a meaning here, and why
  int seeds = 3;                      // 1 .. seeds
  Clock clock = Clock::kReal;
  Budget budget = Budget::kSamples;
  std::int64_t epochs = 2;
  std::int64_t updates = 0;
  double seconds = 0.0;
  std::int64_t batch_size_per_replica = 32;
  std::string model = "mnist-cnn";
  std::string data = "digits";
  SharedTrainFlags shared = parse_shared_train_flags({});  // of every run
  double target_accuracy = 0.95;
  int evaluations = 20;  // over a run; with kSeconds: over `epochs` passes, and on like that
  Trouble trouble;
  std::vector<std::string> trouble_words;  // the same as flags of compare and their values, in turn
  std::filesystem::path report;            // folder
  std::filesystem::path program;           // syncopate
  std::filesystem::path cache_dir;
  int jobs = 1;          // virtual runs at once
  bool replace = false;  // what another comparison has left in the folder
  bool show_progress = true;
};

}  // namespace syncopate::bench
