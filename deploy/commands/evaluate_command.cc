// `syncopate evaluate`: measures the weights of a checkpoint on a test split.
#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <ostream>

#include "deploy/commands/commands.h"
#include "worker/checkpoint/checkpoint.h"
#include "worker/run/run_data.h"
#include "worker/train/evaluate.h"

namespace syncopate {

int run_evaluate(const EvaluateOptions& options, std::ostream& out) {
  const DataSplits data =
      open_dataset(options.data, {.cache_dir = options.cache_dir, .seed = options.seed});
  const Graph graph = network_for_data(options.model, options.data, data);
  const ArenaLayout layout = graph.parameter_layout();
  ParameterArena arena(layout, plan_buckets(layout, std::int64_t{8} << 20));
  StateBlock state(graph.state_layout());
  const CheckpointInfo info =
      load_checkpoint(options.checkpoint, graph, {arena.values(), {}, state.values}, "", false);
  arena.bump_all_versions();

  const auto backend = make_cpu_backend(options.lanes);
  PartialEvaluator evaluator(*backend, graph, arena, state, *data.test,
                             {.threads = options.input_threads});
  std::vector<BatchSums> sums(static_cast<std::size_t>(evaluator.batches_of_all()));
  const auto begun = std::chrono::steady_clock::now();
  evaluator.run([] { return false; }, sums);
  Evaluation test = add_up(sums, data.test->size());
  test.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  if (options.json) {
    out << nlohmann::ordered_json{{"checkpoint", options.checkpoint.string()},
                                  {"model", options.model},
                                  {"data", options.data},
                                  {"step", info.progress.at.step},
                                  {"test_accuracy", test.accuracy},
                                  {"test_loss", test.loss},
                                  {"samples", test.samples},
                                  {"seconds", test.seconds}}
               .dump()
        << std::endl;
    return 0;
  }
  std::array<char, 160> text{};
  std::snprintf(text.data(), text.size(),
                "test accuracy   %.2f%%\ntest loss       %.4f\nsamples         %lld in %.1f s\n",
                100.0 * test.accuracy, test.loss, static_cast<long long>(test.samples),
                test.seconds);
  out << text.data() << "trained         " << info.progress.at.step << " steps" << std::endl;
  return 0;
}

}  // namespace syncopate
