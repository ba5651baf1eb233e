#include "bench/compare/run_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "bench/compare/lock_file.h"
#include "bench/compare/real_run.h"
#include "bench/compare/report/run_result.h"
#include "bench/compare/run_plan.h"
#include "bench/harness/report.h"
#include "bench/plots/text.h"
#include "models/base/errors.h"
#include "models/base/random.h"
#include "models/base/replacing_file.h"
#include "models/zoo/zoo.h"
#include "worker/checkpoint/weights_file.h"
#include "worker/run/run_sizes.h"
#include "worker/run/train_report.h"

namespace syncopate::bench {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string budget_words(const CompareOptions& options) {
  if (options.budget == Budget::kUpdates) return fmt::format("{} updates", options.updates);
  if (options.budget == Budget::kSeconds) return exact_text(options.seconds) + " s of training";
  return fmt::format("{} of {}", count_text(static_cast<int>(options.epochs), "epoch"),
                     options.data);
}

// Returns which gradients are dropped, in words; "" if none are.
std::string dropped_words(const ps::ConsistencyOptions& consistency) {
  if (consistency.backup_workers > 0) {
    return consistency.backup_workers == 1
               ? "the gradient of an update that comes last"
               : fmt::format("the {} gradients of an update that come last",
                             consistency.backup_workers);
  }
  switch (consistency.staleness_rule) {
    case ps::StalenessRule::kRingmaster:
      return fmt::format("gradients with a staleness of {} or more", consistency.rule_number);
    case ps::StalenessRule::kRennala:
      return "gradients of values that were updated since then";
    default:
      return "";
  }
}

// Returns the outer step in words, and what comes before the first round.
std::string rounds_words(const LocalUpdateOptions& local) {
  const std::string outer = describe_outer_step(local);
  if (pushes_displacements(local)) {
    return fmt::format(
        "{}{}; servers make it at once with each worker's displacement", outer,
        local.outer_learning_rate ? "" : ", the learning rate divided by the number of workers");
  }
  if (!local.local_from) return outer;
  return fmt::format("{}; before the first round, sums of gradients until epoch {:g}", outer,
                     *local.local_from);
}

Json head_of(const CompareOptions& options, const RunSpec& run,
             const std::optional<DataFacts>& data) {
  const Json target = options.target_accuracy ? Json(*options.target_accuracy) : Json(nullptr);
  Json comparison = {{"model", options.model},
                     {"data", options.data},
                     {"target_accuracy", target},
                     {"budget", budget_words(options)},
                     {"batch", batch_words(options)},
                     {"trouble", fmt::format("{}", fmt::join(options.cluster.flags, " "))},
                     {"threads_per_worker", threads_per_worker(options)}};
  if (options.model.starts_with(kNetworkFile)) {
    comparison["network_file"] = describe_file(options.model.substr(kNetworkFile.size()));
  }
  if (const auto& times = run.faults.service_time.times) {
    const std::string_view bytes(reinterpret_cast<const char*>(times->data()),
                                 times->size() * sizeof(double));
    comparison["step_times"] = fmt::format("{:016x}", hash_name(bytes));
  }
  for (const PaperClaim& claim : options.claims) {
    comparison["papers"].push_back({{"source", claim.source},
                                    {"text", claim.text},
                                    {"better", claim.better},
                                    {"worse", claim.worse}});
  }
  if (data) {
    comparison["data_hash"] = data->data_hash;
    comparison["network_hash"] = data->network_hash;
    comparison["network_layers"] = data->network_layers;
    comparison["train_samples"] = data->train_samples;
    const Chance& chance = data->chance;
    comparison["chance"] = {{"share", chance.share},
                            {"classes", chance.classes},
                            {"test_samples", chance.test_samples},
                            {"validation_samples", chance.validation_samples}};
  }
  const bool is_virtual = options.clock == Clock::kVirtual;
  Json head = {{"event", "run"},
               {"label", run.variant.label},
               {"seed", run.seed},
               {"workers", run.variant.workers},
               {"servers", run.variant.servers},
               {"clock", is_virtual ? "virtual" : "real"}};
  if (!is_virtual) head["program"] = options.program.string();
  head["trouble"] = run.fault_flags;
  if (run.predicted_communication_seconds) {
    head["predicted_communication_seconds"] = *run.predicted_communication_seconds;
  }
  head["flags"] = command_line_of(run.train);
  head["warmup_updates"] = run.warmup_updates;
  const auto row = std::ranges::find(options.variants, run.variant.label, &Variant::label);
  head["variant"] = {{"row", row - options.variants.begin()},
                     {"keeps_step", run.variant.is_synchronous},
                     {"distributed", run.variant.has_tasks()},
                     {"learning_rate_rule", run.learning_rate_rule},
                     {"learning_rate", run.train.schedule.learning_rate},
                     {"learning_rate_factor", run.learning_rate_factor},
                     {"momentum", momentum_of(run.train.strategy.optimizer)},
                     {"batch_size", run.train.strategy.batch_size_per_replica},
                     {"threads_per_worker", run.train.strategy.lanes},
                     {"update_flags", update_flags(run.train)}};
  head["variant"]["command"] = command_of(undisturbed(options, run), {.program = "syncopate"});
  if (run.variant.has_outer_step()) {
    head["variant"]["rounds"] = {
        {"steps", run.variant.sync_every},
        {"outer_step", rounds_words(run.train.strategy.local)},
        {"has_outer_optimizer", has_outer_optimizer(options, run.variant)},
        {"outer_learning_rate", outer_options(local_updates_of(run.train).value()).learning_rate}};
  }
  if (const std::string dropped = dropped_words(run.variant.consistency); !dropped.empty()) {
    head["variant"]["drops"] = dropped;
  }
  if (run.stable_rate) head["variant"]["stable_rate"] = *run.stable_rate;
  if (!run.tuning_of.empty()) head["variant"]["tuning_of"] = run.tuning_of;
  if (run.variant.tuned != Tuned::kNo) {
    head["variant"]["at_border"] = run.variant.tuned == Tuned::kAtBorder;
  }
  head["comparison"] = comparison;
  return head;
}

}  // namespace

std::vector<RunHead> planned_heads(const CompareOptions& options, const std::vector<RunSpec>& runs,
                                   const std::optional<DataFacts>& data) {
  std::vector<RunHead> heads;
  for (const RunSpec& run : runs) {
    heads.push_back({run_name(run) + ".jsonl", dump(head_of(options, run, data))});
  }
  return heads;
}

RunFiles::RunFiles(fs::path dir, const std::string& shared_command)
    : dir_(std::move(dir)), lock_(lock_report(dir_, dir_ / "runs", shared_command)) {}

void RunFiles::begin(const std::vector<RunHead>& runs, const ComparisonFacts& facts, bool replace) {
  make_room(dir_, conflict_in(dir_, runs), replace);
  write_comparison_file(dir_, runs, facts);
  remove_stale_locks();
  heads_ = runs;
  machine_ = facts.machine;
}

bool RunFiles::has_failed(const RunSpec& run) const {
  return fs::exists(result(run)) && !is_done(run);
}

void RunFiles::finish(const RunSpec& run, const RunEnding& ending) const {
  const auto head = std::ranges::find(heads_, result(run).filename().string(), &RunHead::file);
  check(head != heads_.end(), "a run that ends was planned");
  const std::string log_text = text_of_file(lines(run));
  std::string text = head->line + "\n";
  if (!ending.begin.empty() && !log_text.starts_with(ending.begin)) text += ending.begin + "\n";
  text += log_text;
  if (!text.ends_with('\n')) text += '\n';
  if (ending.others_cpu_share) {
    Json machine = {{"event", "machine"}};
    machine.update(machine_json(machine_));
    machine["others_cpu_share"] = *ending.others_cpu_share;
    text += dump(machine) + "\n";
  }
  std::vector<std::string> notes = run.notes;
  notes.insert(notes.end(), ending.notes.begin(), ending.notes.end());
  for (const std::string& note : notes) text += dump({{"event", "note"}, {"text", note}}) + "\n";
  const auto end_with = [&](const std::string& reason) {
    text += dump({{"event", "failure"}, {"reason", reason}}) + "\n";
    replace_file(result(run), text);
  };
  if (ending.failure) {
    end_with(*ending.failure);
  } else {
    replace_file(result(run), text);
    if (!read_run(result(run))) end_with("it ended without a summary");
  }
  discard(run);
}

void RunFiles::discard(const RunSpec& run) const {
  fs::remove(lines(run));
  fs::remove_all(checkpoints(run));
}

void RunFiles::remove_stale_locks() const {
  for (const auto& entry : fs::directory_iterator(dir_ / "runs")) {
    if (entry.path().extension() == ".lock") (void)LockFile::try_to_take(entry.path());
  }
}

}  // namespace syncopate::bench
