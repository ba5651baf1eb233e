#include "bench/step/input.h"

#include <chrono>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "bench/harness/measure.h"
#include "bench/harness/report.h"
#include "bench/harness/rounds.h"
#include "bench/step/workload.h"
#include "worker/input/dataset.h"

namespace syncopate::bench {
namespace {

using Clock = std::chrono::steady_clock;
using nlohmann::json;

// Returns samples per second over about `seconds`, after one uncounted batch that starts the
// threads.
double take_batches(BatchSource& source, double seconds) {
  std::int64_t samples = 0;
  double passed = 0.0;
  source.next();
  const Clock::time_point start = Clock::now();
  while (passed < seconds) {
    samples += source.next().size();
    passed = std::chrono::duration<double>(Clock::now() - start).count();
  }
  return static_cast<double>(samples) / passed;
}

}  // namespace

void run_input(InputBenchOptions options) {
  require_writable(options.json_file);
  if (options.quick) {
    options.rounds = std::min(options.rounds, 3);
    options.seconds_per_round = std::min(options.seconds_per_round, 0.25);
  }
  const Workload workload = find_workload(options.model);
  options.input.augment = options.augment == "crop-flip" ? Augment::kCropFlip : Augment::kNone;
  const DataSplits data = open_dataset(options.data, {.cache_dir = options.cache_dir});
  const std::unique_ptr<BatchSource> source = make_batch_source(*data.train, options.input);
  InMemoryTraining training(workload, {.lanes = options.lanes});

  const auto samples = static_cast<double>(workload.batch_size);
  const Rounds rounds =
      take_rounds(options.rounds,
                  {[&] { return take_batches(*source, options.seconds_per_round); },
                   [&] { return samples / median(training.run(workload.steps_per_round)); }},
                  {});
  const std::vector<double> delivered = rounds.counted(0);
  const std::vector<double> eaten = rounds.counted(1);
  const Spread ratio = ratio_of(delivered, eaten);
  std::cout << format_table(
                   {{"data", "batch", "input threads", "samples/s [min-max]",
                     options.model + " eats samples/s", "ratio [min-max]"},
                    {data.name, std::to_string(options.input.batch_size),
                     std::to_string(options.input.threads), spread_text(spread_of(delivered)),
                     spread_text(spread_of(eaten)),
                     spread_text(ratio) + (is_quiet(rounds.foreign) ? " x" : " x NOT QUIET")}})
            << "ours: " << training.description() << '\n'
            << describe_conditions(rounds);
  if (options.json_file.empty()) return;
  const json document = {
      {"data", data.name},
      {"batch_size", options.input.batch_size},
      {"input_threads", options.input.threads},
      {"augment", options.augment},
      {"model", options.model},
      {"device", training.description()},
      {"delivered_per_second_per_round", rounds.sides[0]},
      {"eaten_per_second_per_round", rounds.sides[1]},
      {"ratio", {{"median", ratio.median}, {"min", ratio.min}, {"max", ratio.max}}},
      {"quiet", is_quiet(rounds.foreign)},
      {"foreign_load_per_round", rounds.foreign},
      {"core_ring_gb_per_s_per_round", rounds.ring_gb_per_s}};
  write_report(options.json_file, document.dump(2));
}

}  // namespace syncopate::bench
