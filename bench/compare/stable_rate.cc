#include "bench/compare/stable_rate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>

#include "bench/compare/chance.h"
#include "bench/compare/report/comparison.h"
#include "bench/compare/run_plan.h"
#include "bench/compare/train_flags.h"
#include "bench/compare/virtual_run.h"
#include "bench/harness/measure.h"
#include "bench/plots/text.h"
#include "models/base/errors.h"

namespace syncopate::bench {
namespace {

constexpr double kMostSeconds = 60.0;  // for all short runs; the check must stay cheap

class Ended {};    // the short run has all of its losses
class Stopped {};  // a signal ended the search
class TooSlow {};

// Keeps the training loss of each update. Ends the run before its evaluation, which may take longer
// than its training.
class Losses : public MetricsWriter {
 public:
  void write(const BeginMetrics& /*metrics*/) override {}
  void write(const StepMetrics& metrics) override {
    values.push_back(metrics.loss);
    if (values.size() == kShortRunUpdates) throw Ended();
  }
  void write(const EvalMetrics& /*metrics*/) override {}
  void write(const WorkerMetrics& /*metrics*/) override {}
  void write(const Summary& /*summary*/) override {}

  std::vector<double> values;
};

// Whether the rate of the run may be too large for its staleness. The rule kInverse divides the
// rate by the staleness itself, and kRennala applies no stale gradient.
bool may_be_too_large(const RunSpec& run) {
  const Variant& variant = run.variant;
  const ps::StalenessRule rule = variant.consistency.staleness_rule;
  return !variant.is_synchronous && variant.workers > 1 && is_untuned(run.learning_rate_rule) &&
         rule != ps::StalenessRule::kInverse && rule != ps::StalenessRule::kRennala &&
         !variant.pushes_displacements && run.refusal.empty() && !has_own_data(variant);
}

// Returns the run of one worker at this rate, with the batch and the optimizer of `run`, but
// without momentum. Momentum damps the oscillations of one worker at a large rate, and stale
// gradients take this advantage away. With `mlp` on MNIST, the largest stable rate / (1 - momentum)
// of one worker is about twice as large with a momentum of 0.9 as without. Eight asynchronous
// workers lose accuracy at rate * (1 + staleness) / (1 - momentum) = 0.8 with either.
RunSpec short_run(const RunSpec& run, double rate) {
  RunSpec one{
      .variant = {.label = kOneDevice, .strategy = kOneDevice, .consistency = {}},
      .seed = run.seed,
      .train = run.train,
      .faults = {.service_time = {.kind = ServiceTimeKind::kConstant, .mean_milliseconds = 1.0}}};
  TrainOptions& train = one.train;
  const StrategyOptions& of_run = run.train.strategy;
  train.strategy = StrategyOptions{};
  train.strategy.seed = of_run.seed;
  train.strategy.optimizer = of_run.optimizer;
  if (optimizer_row(of_run.optimizer).has_momentum) {
    train.strategy.optimizer.momentum = 0.0;
    train.strategy.optimizer.nesterov = false;
  }
  train.strategy.batch_size_per_replica = of_run.batch_size_per_replica;
  train.strategy.clip_norm = of_run.clip_norm;
  train.cluster = {};
  train.shares_devices = false;
  train.learning_rate_scale = LearningRateScale::kNone;
  train.reference_batch_size = 0;
  train.schedule = {.learning_rate = rate, .milestones = {}};
  train.loop = {.total_steps = kShortRunUpdates + 1, .eval_every_epochs = 0, .log_every_steps = 1};
  return one;
}

// Trains short runs, each once.
class ShortRuns {
 public:
  ShortRuns(const DataSplits& data, StopSignal& signals, ProgressDisplay& display)
      : data_(data), signals_(signals), display_(display) {}

  // Throws Stopped, TooSlow and what run_virtually() throws.
  bool is_stable(const RunSpec& of, double rate) {
    const RunSpec run = short_run(of, rate);
    const auto [known, is_new] =
        known_.emplace(fmt::format("{}", fmt::join(command_line_of(run.train), " ")), ShortRun{});
    if (is_new) {
      known->second = train(run);
      note(of, rate, known->second);
    }
    return known->second.is_stable(loss_of_chance_);
  }

 private:
  void note(const RunSpec& of, double rate, const ShortRun& losses) {
    const std::string result =
        std::isfinite(losses.end)
            ? fmt::format("loss {:.2f} -> {:.2f}, {}", losses.beginning, losses.end,
                          losses.is_stable(loss_of_chance_) ? "stable" : "not stable")
            : "diverged";
    display_.note(
        fmt::format("one worker{}, {} updates at {:.3g}: {}",
                    momentum_of(of.train.strategy.optimizer) > 0.0 ? " without momentum" : "",
                    kShortRunUpdates, rate, result));
  }

  ShortRun train(const RunSpec& run) {
    Losses losses;
    try {
      run_virtually(run, data_, losses, {}, [&](double) {
        if (signals_.poll()) throw Stopped();
        if (seconds_since(began_) > kMostSeconds) throw TooSlow();
      });
    } catch (const Ended&) {
    } catch (const DivergenceError&) {
    }
    return short_run_of(losses.values);
  }

  const DataSplits& data_;
  StopSignal& signals_;
  ProgressDisplay& display_;
  const double loss_of_chance_ = loss_of_chance(data_);
  const SteadyClock::time_point began_ = SteadyClock::now();
  std::map<std::string, ShortRun> known_;  // by command line
};

// Returns the stable rate that the file of the run has; nullopt if it has none.
std::optional<double> stable_rate_in(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::string line;
  if (!std::getline(in, line)) return std::nullopt;
  const nlohmann::json head = nlohmann::json::parse(line, nullptr, false);
  const nlohmann::json::json_pointer key("/variant/stable_rate");
  return head.is_object() && head.contains(key) ? std::optional(head.at(key).get<double>())
                                                : std::nullopt;
}

}  // namespace

bool ShortRun::is_stable(double loss_of_chance) const noexcept {
  // At a rate that is much too large, a network learns a few per cent and no more. With `mlp` on
  // MNIST and stale gradients, accuracy falls from the rate on at which one worker reaches 0.96.
  constexpr double kMostOfGuessing = 0.9;
  return end < beginning && end < kMostOfGuessing * loss_of_chance;
}

ShortRun short_run_of(const std::vector<double>& losses) {
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  const auto mean_of = [](auto begin, auto end) {
    return std::accumulate(begin, end, 0.0) / static_cast<double>(end - begin);
  };
  if (losses.size() < kShortRunUpdates) return {kNaN, kNaN};
  return {mean_of(losses.begin(), losses.begin() + kAveragedUpdates),
          mean_of(losses.end() - kAveragedUpdates, losses.end())};
}

std::optional<double> largest_stable_rate(double start,
                                          const std::function<bool(double rate)>& is_stable) {
  constexpr int kMostRuns = 10;
  double rate = start;
  for (int run = 0; run < kMostRuns; ++run, rate /= 2.0) {
    if (is_stable(rate)) return rate;
  }
  return std::nullopt;
}

bool find_stable_rates(std::vector<ComparisonPart>& parts, const DataSplits& data,
                       StopSignal& signals, ProgressDisplay& display) {
  ShortRuns short_runs(data, signals, display);
  std::map<std::string, std::optional<double>> rates;  // by label
  const auto find = [&](const RunSpec& run) {
    const double expected_staleness = run.variant.workers - 1;
    const double start = run.train.schedule.learning_rate * run.learning_rate_factor *
                         (1.0 + expected_staleness) /
                         (1.0 - momentum_of(run.train.strategy.optimizer));
    return largest_stable_rate(start, [&](double rate) { return short_runs.is_stable(run, rate); });
  };
  try {
    for (ComparisonPart& part : parts) {
      for (const RunSpec& run : part.runs) {
        if (!may_be_too_large(run)) continue;
        if (const auto known = stable_rate_in(part.files->result(run))) {
          rates[run.variant.label] = known;
        }
      }
    }
    for (ComparisonPart& part : parts) {
      for (RunSpec& run : part.runs) {
        if (!may_be_too_large(run)) continue;
        if (!rates.contains(run.variant.label)) {
          require_virtual(part.options.shared, run.variant);
          rates[run.variant.label] = find(run);
        }
        run.stable_rate = rates[run.variant.label];
      }
    }
  } catch (const Stopped&) {
    return false;
  } catch (const TooSlow&) {
    display.note("the largest stable rate is not known: one worker takes too long to search it");
  } catch (const Error& error) {  // such as a flag that the virtual clock refuses
    display.note(fmt::format("the largest stable rate is not known: {}", error.what()));
  }
  return true;
}

}  // namespace syncopate::bench
