#include "bench/compare/verification.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>
#include <span>
#include <stdexcept>
#include <vector>

#include "bench/compare/compare_flags.h"
#include "bench/compare/comparison_parts.h"
#include "bench/compare/data_facts.h"
#include "bench/compare/map_file.h"
#include "bench/compare/repeated_run.h"
#include "bench/compare/run_trainer.h"
#include "bench/compare/tuning.h"
#include "bench/harness/program_commit.h"
#include "bench/harness/report.h"
#include "bench/harness/scratch_folder.h"
#include "bench/plots/text.h"
#include "models/base/errors.h"
#include "worker/train/progress.h"

namespace syncopate::bench {
namespace {

namespace fs = std::filesystem;

// Returns the options of the recorded command.
CompareOptions options_of(const fs::path& dir, const Comparison& recorded,
                          const Environment& environment) {
  const fs::path file = dir / "comparison.json";
  const std::vector<std::string> words = words_of_command(recorded.command);
  if (words.size() < 2 || words[1] != "compare") {
    throw FileError(
        fmt::format("{}: expected \"command\" to be a command of syncopate-bench compare, found "
                    "\"{}\"; repeat the comparison with that command to verify it",
                    file.string(), recorded.command));
  }
  FlagSet flags("syncopate-bench compare", "");
  CompareFlags parsed(flags);
  try {
    (void)flags.parse(std::span(words).subspan(2));
    return parsed.options(environment);
  } catch (const UsageError& error) {
    throw FileError(fmt::format("{}: \"command\" is refused: {}", file.string(), error.what()));
  }
}

// Returns the path of the program that trained the runs, as the first line of a run names it.
std::string recorded_program(const fs::path& dir, const Comparison& recorded) {
  for (const ComparedRun& run : recorded.variants.front().runs) {
    std::ifstream in(dir / run.file, std::ios::binary);
    std::string first;
    std::getline(in, first);
    const auto head = nlohmann::json::parse(first, nullptr, false);
    if (head.is_object()) return head.value("program", "");
  }
  return "";
}

// Throws unless the data set and the network are the recorded ones.
void require_hashes(const fs::path& dir, const Comparison& recorded, const CompareOptions& options,
                    const DataFacts& facts) {
  const auto require = [&](const std::string& what, const std::string& was, const std::string& is,
                           const std::string& advice) {
    if (was == is) return;
    throw std::runtime_error(
        fmt::format("{}: {} is not that of the comparison: expected hash {}, found {}; {}",
                    dir.string(), what, was.empty() ? "none" : was, is, advice));
  };
  require(fmt::format("the data set {}", options.data_here()), recorded.data_hash, facts.data_hash,
          "restore its files, or give the recorded data set with --data");
  require(fmt::format("the network {}", options.model), recorded.network_hash, facts.network_hash,
          "restore the network, or \"command\" in comparison.json");
}

// A run of the comparison that is trained again.
struct RepeatedRun {
  const ComparisonPart* part;
  const RunSpec* run;
  fs::path recorded;
  std::string not_comparable;  // why the run is not trained; "": it is

  std::string name() const {
    return run->cluster + (run->cluster.empty() ? "" : ": ") + run->variant.label;
  }
};

// Returns the first run of the variant that has a result; if none has one, the first run.
const RunSpec& first_run(const ComparisonPart& part, const std::string& label,
                         const std::function<fs::path(const RunSpec&)>& file_of) {
  const RunSpec* first = nullptr;
  for (const RunSpec& run : part.runs) {
    if (run.variant.label != label) continue;
    if (!weights_in(file_of(run)).empty()) return run;
    if (first == nullptr) first = &run;
  }
  check(first != nullptr, "each variant has runs");
  return *first;
}

// Returns one run of each variant, on each cluster. Throws std::runtime_error if a variant has no
// file of a run.
std::vector<RepeatedRun> runs_to_repeat(const fs::path& dir,
                                        const std::vector<ComparisonPart>& parts) {
  std::vector<RepeatedRun> repeated;
  for (const ComparisonPart& part : parts) {
    const auto file_of = [&](const RunSpec& run) {
      return dir / part.options.cluster.name / "runs" / (run_name(run) + ".jsonl");
    };
    for (const Variant& variant : part.options.variants) {
      const RunSpec& run = first_run(part, variant.label, file_of);
      const fs::path recorded = file_of(run);
      if (!fs::exists(recorded)) {
        throw std::runtime_error(fmt::format(
            "{}: {} has no result to verify; the command of the comparison trains its runs",
            dir.string(), variant.label));
      }
      repeated.push_back({.part = &part,
                          .run = &run,
                          .recorded = recorded,
                          .not_comparable = weights_in(recorded).empty()
                                                ? "its runs failed"
                                                : why_not_comparable(run, part.options.clock)});
    }
  }
  return repeated;
}

// Trains the comparable runs. Throws std::runtime_error if a signal stops the training.
void train_again(const std::vector<RepeatedRun>& repeated, const DataSplits& data,
                 StopSignal& signals) {
  std::vector<MissingRun> missing;
  for (const RepeatedRun& one : repeated) {
    if (one.not_comparable.empty()) missing.push_back({one.part, one.run});
  }
  const auto display = make_progress_display(true);
  const RunTrainer trainer{data, signals, *display, /*notes_failures_only=*/true};
  const bool ended = trainer.train(missing, static_cast<int>(missing.size()));
  display->finish();
  if (!ended) throw std::runtime_error("stopped; the comparison is not verified");
}

// Returns what may explain a difference, and what to try.
std::string advice_for(const RepeatedRun& one, const Comparison& recorded) {
  const fs::path repeated = one.part->files->result(*one.run);
  const std::string devices = difference_of_devices(one.recorded, repeated);
  if (!devices.empty()) {
    return devices + "; verify on a machine with the recorded instruction set and oneDNN";
  }
  for (const Machine& machine : recorded.machines) {
    if (machine.commit == program_commit()) continue;
    return fmt::format(
        "the runs were made by commit {}, this program by commit {}; verify with "
        "the recorded commit",
        machine.commit.empty() ? "unknown" : machine.commit,
        program_commit().empty() ? "unknown" : program_commit());
  }
  return "restore " + one.recorded.string() + ", or repeat the comparison in another folder";
}

// Prints the result of each variant. Throws std::runtime_error if one differs.
void compare_results(const std::vector<RepeatedRun>& repeated, const Comparison& recorded,
                     std::ostream& out) {
  std::string first;
  int differing = 0;
  int compared = 0;
  for (const RepeatedRun& one : repeated) {
    if (!one.not_comparable.empty()) {
      out << fmt::format("{}: not comparable ({})\n", one.name(), one.not_comparable);
      continue;
    }
    ++compared;
    const std::string difference = difference_of_repeated(
        one.recorded, one.part->files->result(*one.run), one.part->options.clock);
    if (difference.empty()) {
      out << fmt::format("{}: equal (weights {})\n", one.name(), weights_in(one.recorded));
      continue;
    }
    out << fmt::format("{}: differs ({})\n", one.name(), difference);
    if (++differing > 1) continue;
    first = fmt::format("{}, seed {}: {}; {}", one.name(), one.run->seed, difference,
                        advice_for(one, recorded));
  }
  out.flush();
  if (differing > 0) {
    throw std::runtime_error(fmt::format("{} of {} could not be reproduced: {}", differing,
                                         count_text(compared, "variant"), first));
  }
  out << "The data set, the network and the flags are those of the comparison, and "
      << (compared == 0
              ? std::string("nothing could be compared.\n")
              : fmt::format("{} trained again with equal {}.\n", count_text(compared, "variant"),
                            recorded.has_virtual_clock ? "weights and times" : "weights"));
}

}  // namespace

void verify(const VerifyOptions& how, const Environment& environment, StopSignal& signals,
            std::ostream& out) {
  const fs::path first = has_map(how.dir) ? how.dir / clusters_in(how.dir).front() : how.dir;
  const Comparison recorded = read_comparison(first);
  CompareOptions options = options_of(first, recorded, environment);
  options.report = how.dir;
  options.replace = false;
  options.moved_data = how.data;
  const DataSplits data = open_classes(options);
  const DataFacts facts = data_facts_of(options, data);
  require_hashes(first, recorded, options, facts);
  const fs::path program = options.program;
  options.program = recorded_program(first, recorded);  // only the plan has the recorded program
  if (options.tune.is_on) options = tuned_before(options);
  std::vector<ComparisonPart> parts = parts_of(with_step_time(options, data, facts), data, facts);
  const ScratchFolder scratch;
  for (ComparisonPart& part : parts) {
    const std::string& cluster = part.options.cluster.name;
    require_planned(how.dir / cluster, part.heads);
    part.options.program = program;
    for (RunSpec& run : part.runs) {
      // Virtual runs read `data`, and their files have the recorded name.
      const bool opens_data = options.clock == Clock::kReal && !has_own_data(run.variant);
      if (opens_data) run.train.data = options.data_here();
    }
    part.files = std::make_unique<RunFiles>(scratch.path() / cluster);
    part.files->begin(part.heads, {.command = recorded.command, .machine = machine_here()}, false);
  }
  const std::vector<RepeatedRun> repeated = runs_to_repeat(how.dir, parts);
  train_again(repeated, data, signals);
  compare_results(repeated, recorded, out);
}

}  // namespace syncopate::bench
