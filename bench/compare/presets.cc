#include "bench/compare/presets.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <utility>

#include "bench/plots/text.h"
#include "deploy/cli/flag.h"
#include "models/base/errors.h"
#include "models/base/flag_rules.h"

namespace syncopate::bench {
namespace {

using Words = std::vector<std::string>;

Words operator+(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

Variant with(const std::string& word, int workers, const std::string& label, Words flags) {
  Variant variant = parse_variant(word, workers, 1);
  variant.label = label;
  variant.flags = std::move(flags);
  return variant;
}

Words sgd(double learning_rate) {
  return {"--optimizer=sgd", "--learning-rate=" + exact_text(learning_rate)};
}

Words momentum_optimizer(double momentum, double learning_rate) {
  return {"--optimizer=momentum", "--momentum=" + exact_text(momentum),
          "--learning-rate=" + exact_text(learning_rate)};
}

// Sets the mlp of the small presets: 784-128-10, ReLU, batches of 32.
void train_mlp(CompareOptions& options, const std::string& service_time) {
  options.model = "mlp";
  options.batch_size_per_replica = 32;
  options.cluster.flags = {"--service-time", service_time};
  options.cluster.faults.service_time = parse_service_time(service_time, "--service-time");
}

// A preset about momentum with stale gradients: eight asynchronous workers with momentum 0.9 apply
// gradients that are seven versions old, and diverge.
void apply_momentum(CompareOptions& options) {
  train_mlp(options, "constant:1");
  options.epochs = 2;
  options.target_accuracy = 0.95;
  for (const double momentum : {0.0, 0.5, 0.9}) {
    const Words flags = momentum_optimizer(momentum, 0.02);
    const std::string suffix = ", momentum " + exact_text(momentum);
    options.variants.push_back(with("one-device", 1, "one-device" + suffix, flags));
    options.variants.push_back(
        with("parameter-server:async", 8, "async, 8 workers" + suffix, flags));
  }
}

// Compares consistencies of parameter servers. Synchronous workers sum their gradients and may use
// the larger learning rate; asynchronous workers are faster but apply stale gradients.
void compare_consistencies(CompareOptions& options, const std::string& service_time, int backups) {
  train_mlp(options, service_time);
  options.epochs = 3;
  options.target_accuracy = 0.95;
  options.evaluations = 60;
  const Words synchronous = sgd(0.4);
  const Words asynchronous = sgd(0.1);
  const std::string many = std::to_string(backups);
  options.variants.push_back(with("parameter-server:sync", 8, "sync", synchronous));
  options.variants.push_back(with("parameter-server:sync+backup:" + many, 8,
                                  "sync, " + many + (backups == 1 ? " backup" : " backups"),
                                  synchronous));
  options.variants.push_back(with("parameter-server:ssp:3", 8, "ssp, staleness 3", asynchronous));
  options.variants.push_back(with("parameter-server:async", 8, "async", asynchronous));
}

// A preset about random stragglers: the trade-off between error and run time.
void apply_stragglers(CompareOptions& options) {
  compare_consistencies(options, "exponential:1", 2);
}

// A preset where one worker is always four times as slow as the others.
void apply_one_slow(CompareOptions& options) {
  compare_consistencies(options, "constant:1", 1);
  options.seeds = 10;  // with five, one backup worker and async are too close to call
  options.cluster.flags.insert(options.cluster.flags.end(), {"--slow", "worker=7,factor=4"});
  options.cluster.faults.slow.push_back({.worker = 7, .factor = 4.0});
}

// A preset about the number of asynchronous workers that a learning rate allows, and two remedies:
// the rate divided by the staleness, and the rate divided by the number of workers.
void apply_staleness(CompareOptions& options) {
  train_mlp(options, "constant:1");
  options.epochs = 2;
  options.target_accuracy = 0.95;
  const Words plain_flags = sgd(0.1);
  for (const int workers : {1, 2, 4, 8, 16}) {
    const std::string many = std::to_string(workers) + (workers == 1 ? " worker" : " workers");
    options.variants.push_back(with("parameter-server:async", workers, many, plain_flags));
    if (workers < 8) continue;
    options.variants.push_back(
        with("parameter-server:async+inverse", workers, many + ", rate / staleness", plain_flags));
    options.variants.push_back(with("parameter-server:async", workers, many + ", rate / workers",
                                    plain_flags + Words{"--learning-rate-scale=inverse-workers"}));
  }
}

// ResNet-20 on CIFAR-10 as in its paper, with a quarter of the epochs.
void train_resnet20(CompareOptions& options, std::int64_t epochs) {
  options.model = "resnet20";
  options.batch_size_per_replica = 128;
  options.epochs = epochs;
  options.evaluations = static_cast<int>(epochs);
  options.target_accuracy = 0.85;
  options.cluster.flags = {"--service-time", "constant:1"};
  options.cluster.faults.service_time = parse_service_time("constant:1", "--service-time");
}

Words resnet20_recipe(double momentum, const std::string& milestones) {
  return momentum_optimizer(momentum, 0.1) + Words{"--weight-decay=1e-4", "--lr-schedule=step",
                                                   "--lr-milestones=" + milestones,
                                                   "--augment=crop-flip"};
}

// A preset of Table 1 of Zheng et al. 2017: the cost of asynchrony and the gain of delay
// compensation, at a scale that a CPU trains in a minute.
void apply_dc_asgd(CompareOptions& options) {
  train_mlp(options, "constant:1");
  options.epochs = 2;
  options.seeds = 10;  // with five, the gain is too small to be shown
  options.target_accuracy = 0.95;
  options.variants.push_back(with("one-device", 1, "one-device", sgd(0.1)));
  for (const char* const rule : {"", "+dc", "+dc-adaptive"}) {
    const std::string suffix = *rule == '\0' ? "" : std::string(", ") + (rule + 1);
    options.variants.push_back(
        with("parameter-server:async" + std::string(rule), 8, "async" + suffix, sgd(0.1)));
  }
  options.claims = {{.source = "Zheng et al. 2017, DC-ASGD",
                     .text = "delay compensation raises the accuracy of asynchronous training",
                     .better = "async, dc-adaptive",
                     .worse = "async"}};
}

// The same on ResNet-20 and CIFAR-10, also with momentum.
void apply_dc_asgd_of_paper(CompareOptions& options) {
  train_resnet20(options, 40);
  for (const double momentum : {0.0, 0.9}) {
    const Words flags = resnet20_recipe(momentum, "20,30");
    const std::string suffix = ", momentum " + exact_text(momentum);
    options.variants.push_back(with("one-device", 1, "one-device" + suffix, flags));
    for (const int workers : {4, 8}) {
      const std::string rest = ", " + std::to_string(workers) + " workers" + suffix;
      options.variants.push_back(with("parameter-server:sync", workers, "sync" + rest, flags));
      options.variants.push_back(with("parameter-server:async", workers, "async" + rest, flags));
      options.variants.push_back(
          with("parameter-server:async+dc", workers, "async, dc" + rest, flags));
      options.variants.push_back(
          with("parameter-server:async+dc-adaptive", workers, "async, dc-adaptive" + rest, flags));
    }
  }
}

// A preset of Goyal et al. 2017: a learning rate proportional to the batch, with and without a
// warm-up, at a scale that a CPU trains in a minute.
void apply_large_batch(CompareOptions& options) {
  train_mlp(options, "constant:1");
  options.epochs = 2;
  options.seeds = 10;  // with five, the loss without a warm-up is too uncertain to be shown
  options.target_accuracy = 0.95;
  options.variants.push_back(with("one-device", 1, "batch 32", sgd(0.1)));
  options.variants.push_back(with("mirrored", 8, "batch 256, rate of batch 32", sgd(0.1)));
  options.variants.push_back(with("mirrored", 8, "batch 256", sgd(0.8)));
  options.variants.push_back(
      with("mirrored", 8, "batch 256, warm-up", sgd(0.8) + Words{"--warmup-epochs=0.2"}));
  options.claims = {{.source = "Goyal et al. 2017",
                     .text = "a learning rate in proportion to the batch needs a warm-up",
                     .better = "batch 256, warm-up",
                     .worse = "batch 256"}};
}

// The same on ResNet-20 and CIFAR-10.
void apply_large_batch_of_paper(CompareOptions& options) {
  train_resnet20(options, 30);
  const Words flags = resnet20_recipe(0.9, "15,22") +
                      Words{"--learning-rate-scale=linear", "--reference-batch-size=128"};
  options.variants.push_back(with("one-device", 1, "batch 128", flags));
  const Words warm = flags + Words{"--warmup-epochs=5"};
  for (const int workers : {8, 32}) {
    const std::string batch = "batch " + std::to_string(workers * 128);
    options.variants.push_back(with("mirrored", workers, batch, flags));
    options.variants.push_back(with("mirrored", workers, batch + ", warm-up", warm));
  }
}

// A preset about slow links: what longer rounds of local updates save in bytes, and cost in
// samples. The rates are the best ones of a search in factors of 2.
void apply_local_updates(CompareOptions& options) {
  train_mlp(options, "constant:1");
  options.epochs = 3;
  options.target_accuracy = 0.95;
  options.evaluations = 40;
  options.cluster_words = {"10gbit{link-rate=10gbit}", "1gbit{link-rate=1gbit}",
                           "100mbit{link-rate=100mbit}"};
  constexpr std::pair<const char*, double> kRates[] = {{"1", 0.4}, {"8", 0.2}, {"64", 0.2}};
  options.variants.push_back(with("multi-worker-mirrored", 8, "all-reduce", sgd(0.4)));
  for (const auto& [steps, rate] : kRates) {
    options.variants.push_back(with(std::string("local-sgd:average:") + steps, 8,
                                    std::string("rounds of ") + steps, sgd(rate)));
  }
}

// A preset about random stragglers and two answers to them: rules that drop stale gradients, and
// synchronous updates that wait for some of the workers. The rates are the best ones of a search in
// factors of 2.
void apply_stale_rules(CompareOptions& options) {
  train_mlp(options, "constant:1");
  options.epochs = 2;
  options.target_accuracy = 0.95;
  options.evaluations = 40;
  options.cluster_words = {"exponential{service-time=exponential:100}",
                           "heavy-tailed{service-time=lognormal:100:1.5}"};
  const auto add = [&](const std::string& word, const std::string& label, double rate) {
    options.variants.push_back(with("parameter-server:" + word, 8, label, sgd(rate)));
  };
  add("async", "async", 0.1);
  add("async+ringmaster:8", "ringmaster, limit 8", 0.1);
  add("async+rennala:4", "rennala, 4 gradients", 0.4);
  add("sync+backup:2", "sync, 2 backups", 0.3);
  add("sync", "sync", 0.4);
  options.claims = {
      {.source = "Maranjyan et al. 2025, Ringmaster ASGD",
       .text = "Ringmaster has the optimal time complexity, which earlier asynchronous methods "
               "have not",
       .better = "ringmaster, limit 8",
       .worse = "async"},
      {.source = "Begunov and Tyurin 2026, Do We Need Asynchronous SGD?",
       .text = "synchronous training that waits for m of n workers has the optimal time "
               "complexity in many practical cases, up to logarithmic factors",
       .better = "sync, 2 backups",
       .worse = "ringmaster, limit 8"}};
}

// A preset about momentum with stale gradients and the rules that shall repair it. All variants
// have one rate for the batch of a worker, the default of the optimizer; --tune searches each
// variant's own.
void apply_async_momentum(CompareOptions& options) {
  train_mlp(options, "exponential:1");
  options.epochs = 2;
  options.target_accuracy = 0.95;
  const Words flags = momentum_optimizer(0.9, 0.01) + Words{"--learning-rate-scale=linear"};
  const auto add = [&](const std::string& word, const std::string& label, const Words& of_row) {
    options.variants.push_back(with("parameter-server:" + word, 8, label, of_row));
  };
  add("async", "async", flags);
  add("async+ordered-momentum", "ordered momentum", flags);
  add("async+ringmaster:4", "ringmaster, limit 4", flags);
  add("async+rennala:8", "rennala, 8 gradients", flags);
  // The momentum is in the outer step. The rate equals rate / (1 - momentum) of the other rows.
  add("async+displacement:delayed-nesterov:8:1", "delayed Nesterov",
      Words{"--optimizer=sgd", "--learning-rate=0.1", "--learning-rate-scale=linear"});
  add("sync", "sync", flags);
  options.claims = {{.source = "Shi et al. 2024, Ordered momentum for asynchronous SGD",
                     .text = "momentum impedes asynchronous training, unless the gradients are "
                             "ordered by their iterations",
                     .better = "ordered momentum",
                     .worse = "async"}};
}

constexpr std::array kPresets = {
    PresetRow{"momentum",
              "momentum 0, 0.5 and 0.9, each on one device and with 8 asynchronous workers, which "
              "apply stale gradients",
              apply_momentum},
    PresetRow{"stragglers",
              "parameter servers under sync, sync with 2 backup workers, ssp and async, with "
              "exponentially distributed compute delays. With backup workers, a late worker "
              "finishes its step, but its gradient is dropped",
              apply_stragglers},
    PresetRow{"one-slow",
              "parameter servers under sync, sync with 1 backup worker, ssp and async, with 8 "
              "workers, one of them 4x slower than the others",
              apply_one_slow},
    PresetRow{"staleness",
              "1 to 16 asynchronous workers with equal learning rates; 8 and 16 workers also with "
              "a learning rate divided by the staleness or by the number of workers",
              apply_staleness},
    PresetRow{
        "local-updates",
        "all-reduce in every step, and local updates with the plain average in rounds of 1, 8 "
        "and 64 steps, each with 8 workers, on links of 10 Gbit/s, 1 Gbit/s and 100 Mbit/s. "
        "Each run is trained once and timed on the three links",
        apply_local_updates},
    PresetRow{"stale-rules",
              "8 asynchronous workers without a rule for stale gradients, with ringmaster and with "
              "rennala, and synchronous ones without and with 2 backup workers, each with "
              "exponentially distributed and with heavy-tailed (log-normal) step times",
              apply_stale_rules},
    PresetRow{
        "async-momentum",
        "8 workers with momentum 0.9: asynchronous ones without a rule for stale gradients, "
        "with ordered momentum, ringmaster, rennala and delayed Nesterov, and synchronous ones. "
        "All have the default rate for a worker's batch; --tune searches each variant's own rate",
        apply_async_momentum, nullptr, true},
    PresetRow{"dc-asgd",
              "8 asynchronous workers with and without delay compensation (DC-ASGD). With --data "
              "cifar10:DIR: the network of the paper, resnet20, which needs a GPU (not run yet)",
              apply_dc_asgd, apply_dc_asgd_of_paper},
    PresetRow{"large-batch",
              "batches of 32 and 256 with proportional learning rates, with and without warm-up. "
              "With --data cifar10:DIR: resnet20 with batches of 128, 1024 and 4096, which needs a "
              "GPU (not run yet)",
              apply_large_batch, apply_large_batch_of_paper}};

std::string kind_of(const std::string& data) { return data.substr(0, data.find(':')); }

// Sets the experiment of the preset for this data set. Returns the kind of data for which its
// target accuracy is valid.
std::string_view apply_row(const PresetRow& row, const std::string& data, CompareOptions& options) {
  const bool is_of_paper = row.apply_to_cifar10 != nullptr && kind_of(data) == "cifar10";
  (is_of_paper ? row.apply_to_cifar10 : row.apply)(options);
  return is_of_paper ? "cifar10" : "digits";
}

// Returns the flags of train that the variants of a preset set, each once, and
// --learning-rate-scale: a preset always decides about the scale itself.
std::vector<std::string> train_flags_of(const std::vector<Variant>& variants) {
  std::vector<std::string> flags = {"--learning-rate-scale"};
  for (const Variant& variant : variants) {
    for (const std::string& word : variant.flags) {
      const std::string flag = word.substr(0, word.find('='));
      if (std::ranges::find(flags, flag) == flags.end()) flags.push_back(flag);
    }
  }
  return flags;
}

}  // namespace

std::span<const PresetRow> presets() noexcept { return kPresets; }

std::string flags_in_place_of(const PresetRow& preset, const std::string& data,
                              const std::string& model) {
  CompareOptions options;
  apply_row(preset, data, options);
  int workers = 0;
  std::vector<std::string> words;
  for (const Variant& variant : options.variants) {
    std::vector<std::string> flags;
    for (const std::string& flag : variant.flags) flags.push_back(flag.substr(2));  // without --
    words.push_back(fmt::format("{}{{{}}}", variant.word, fmt::join(flags, ",")));
    if (variant.row().is_alone()) continue;
    if (workers > 0 && variant.workers != workers) return "";
    workers = variant.workers;
  }
  const std::string cluster =
      options.cluster_words.empty()
          ? fmt::format("{}", fmt::join(options.cluster.flags, " "))
          : fmt::format("--clusters '{}'", fmt::join(options.cluster_words, ","));
  return fmt::format(
      "--workers {} --servers 1 --model {} --batch-size-per-replica {} --epochs {} {} "
      "--strategies '{}'",
      workers, model, options.batch_size_per_replica, options.epochs, cluster,
      fmt::join(words, ","));
}

void apply_preset(CompareOptions& options, const std::string& name, const FlagSet& flags) {
  require_name("--preset", name, names_of(presets()));
  const auto row = std::ranges::find(presets(), std::string_view(name), &PresetRow::name);
  CompareOptions own;
  const std::string_view data = apply_row(*row, options.data, own);
  const std::string model = flags.has("--model") ? options.model : own.model;
  const std::string instead = flags_in_place_of(*row, options.data, model);
  for (const char* flag : kFlagsOfPresets) {
    if (!flags.has(flag)) continue;
    throw UsageError(fmt::format(
        "{}: --preset has its own {}; leave one of them out; beside --preset may be given {}{}",
        flag, listed({kFlagsOfPresets.begin(), kFlagsOfPresets.end()}), kBesidePresets,
        instead.empty() ? "" : fmt::format("; or give in place of --preset: {}", instead)));
  }
  const bool keeps_target = model == own.model && kind_of(options.data) == data;
  if (model != own.model) {
    options.notes.push_back(fmt::format(
        "--preset {}: its learning rates were chosen for {}; where {} does not learn, {}", name,
        own.model, model,
        instead.empty() ? "give --strategies with other rates in place of --preset"
                        : "give in place of --preset, with other rates: " + instead));
  }
  apply_row(*row, options.data, options);
  options.model = model;
  options.preset = name;
  if (!keeps_target) options.target_accuracy.reset();
  const std::vector<std::string> of_train = train_flags_of(options.variants);
  for (const std::string& flag : options.shared.given) {
    if (std::ranges::find(of_train, flag) == of_train.end()) continue;
    throw UsageError(fmt::format("{} after --: --preset {} sets {}; leave one of them out", flag,
                                 name, listed(of_train)));
  }
}

}  // namespace syncopate::bench
