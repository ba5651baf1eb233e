#include "bench/compare/run_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <utility>

#include "bench/compare/report/run_result.h"
#include "bench/compare/run_plan.h"
#include "bench/plots/text.h"
#include "models/base/errors.h"
#include "models/base/replacing_file.h"

namespace syncopate::bench {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

std::string text_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void write_text(const fs::path& file, const std::string& text) {
  ReplacingFile out(file);
  out.write(std::as_bytes(std::span(text)));
  out.commit();
}

std::string dump(const Json& json, int indent = -1) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

// Returns the first line of a run's result file, a JSON object; null for a missing or empty file.
Json head_in(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::string first;
  if (!in || !std::getline(in, first)) return nullptr;
  Json head = Json::parse(first, nullptr, false);
  return head.is_object() ? head : Json::object();
}

const char* name_of(Clock clock) { return clock == Clock::kVirtual ? "virtual" : "real"; }

// Returns all conditions that the result of a run depends on, as JSON.
Json head_of(const CompareOptions& options, const RunSpec& run) {
  Json head = {{"event", "run"},
               {"label", run.variant.label},
               {"seed", run.seed},
               {"workers", run.variant.workers},
               {"servers", run.variant.servers},
               {"clock", name_of(options.clock)}};
  if (options.clock == Clock::kReal) head["program"] = options.program.string();
  head["trouble"] = run.fault_flags;
  if (run.predicted_communication_seconds) {
    head["predicted_communication_seconds"] = *run.predicted_communication_seconds;
  }
  head["flags"] = command_line_of(run.train);
  return head;
}

struct Condition {
  const char* key;
  const char* words;
};
// The conditions that must be equal for the result of an earlier run to be reused. An error message
// names the first difference in this order.
constexpr std::array kConditions = {Condition{"clock", "with another clock"},
                                    Condition{"workers", "with another number of workers"},
                                    Condition{"servers", "with another number of servers"},
                                    Condition{"trouble", "with other fault injection"},
                                    Condition{"flags", "with other flags"},
                                    Condition{"program", "with another program"}};

// Compares the first lines of two result files. Returns how the run of `found` differs from the run
// of `wanted`, such as "with other flags"; "" if it does not.
std::string difference_of(const Json& found, const Json& wanted) {
  const auto at = [](const Json& head, const char* key) {
    return head.contains(key) ? head.at(key) : Json(nullptr);
  };
  for (const Condition& condition : kConditions) {
    if (at(found, condition.key) != at(wanted, condition.key)) return condition.words;
  }
  return "";
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

// Returns the machines that the earlier comparison's file `earlier` lists, if there is such a file,
// followed by this machine if it is not the last of them.
Json machines_of(const Machine& here, const fs::path& earlier) {
  Json machines = Json::array();
  const Json found = earlier.empty() ? Json() : Json::parse(text_of(earlier), nullptr, false);
  if (found.is_object() && found.contains("machines")) machines = found.at("machines");
  Json now = {{"host", here.host}, {"processor", here.processor}, {"cpus", here.cpus},
              {"gpus", here.gpus}, {"version", here.version},     {"date", here.date}};
  const auto without_date = [](Json machine) {
    machine.erase("date");
    return machine;
  };
  if (machines.empty() || without_date(machines.back()) != without_date(now)) {
    machines.push_back(now);
  }
  return machines;
}

std::string budget_words(const CompareOptions& options) {
  if (options.budget == Budget::kUpdates) return fmt::format("{} updates", options.updates);
  if (options.budget == Budget::kSeconds) return exact_text(options.seconds) + " s of training";
  return fmt::format("{} of {}", count_text(static_cast<int>(options.epochs), "epoch"),
                     options.data);
}

// Returns the learning rate rule of a comparison whose variants have these rules.
std::string rule_of_all(const std::set<std::string>& rules) {
  if (rules.size() == 1) return *rules.begin();
  return rules.contains("none") ? "none" : "given";
}

}  // namespace

RunFiles::RunFiles(fs::path dir) : dir_(std::move(dir)) {
  std::error_code error;
  fs::create_directories(dir_ / "runs", error);
  if (error) {
    throw FileError(fmt::format("--report {}: cannot make the folder: {}; choose another one",
                                dir_.string(), error.message()));
  }
  lock_.emplace(dir_, FolderLockOptions{.flag = "--report", .user = "comparison"});
}

fs::path RunFiles::result(const RunSpec& run) const {
  return dir_ / "runs" / (run_name(run) + ".jsonl");
}
fs::path RunFiles::lines(const RunSpec& run) const {
  return dir_ / "runs" / (run_name(run) + ".lines");
}
fs::path RunFiles::log(const RunSpec& run) const {
  return dir_ / "runs" / (run_name(run) + ".log");
}

fs::path RunFiles::checkpoints(const RunSpec& run) const {
  return dir_ / "runs" / (run_name(run) + ".checkpoints");
}

void RunFiles::begin(const CompareOptions& options, const std::vector<RunSpec>& runs,
                     const ComparisonFacts& facts) const {
  for (const RunSpec& run : runs) check_conditions(options, run);
  const bool goes_on =
      std::ranges::any_of(runs, [&](const RunSpec& run) { return fs::exists(result(run)); });
  Json variants = Json::array();
  std::set<std::string> rules;
  for (const Variant& variant : options.variants) {
    Json files = Json::array();
    const RunSpec* any = nullptr;  // the runs of a variant differ in their seeds only
    for (const RunSpec& run : runs) {
      if (run.variant.label != variant.label) continue;
      any = &run;
      files.push_back((fs::path("runs") / result(run).filename()).string());
    }
    check(any != nullptr, "every variant has a run");
    rules.insert(any->learning_rate_rule);
    variants.push_back({{"label", variant.label},
                        {"workers", variant.workers},
                        {"keeps_step", variant.is_synchronous},
                        {"distributed", variant.has_tasks()},
                        {"learning_rate_rule", any->learning_rate_rule},
                        {"learning_rate", any->train.schedule.learning_rate},
                        {"learning_rate_factor", any->learning_rate_factor},
                        {"threads_per_worker", any->train.strategy.lanes},
                        {"runs", files}});
  }
  const fs::path file = dir_ / "comparison.json";
  Json comparison = {{"command", facts.command},
                     {"model", options.model},
                     {"data", options.data},
                     {"target_accuracy", options.target_accuracy},
                     {"budget", budget_words(options)},
                     {"clock", name_of(options.clock)},
                     {"trouble", joined(options.fault_flags)},
                     {"machines", machines_of(facts.machine, goes_on ? file : fs::path())},
                     {"threads_per_worker", threads_per_worker(options)},
                     {"learning_rate_rule", rule_of_all(rules)}};
  if (facts.chance) {
    comparison["chance"] = {{"share", facts.chance->share},
                            {"classes", facts.chance->classes},
                            {"test_samples", facts.chance->test_samples}};
  }
  comparison["variants"] = variants;
  write_text(file, dump(comparison, 2) + "\n");
}

void RunFiles::check_conditions(const CompareOptions& options, const RunSpec& run) const {
  const Json found = head_in(result(run));
  if (found.is_null()) return;
  const std::string difference = difference_of(found, head_of(options, run));
  if (difference.empty()) return;
  if (options.replace) {
    fs::remove(result(run));
    return;
  }
  throw UsageError(
      fmt::format("--report {} has another comparison, in which {} was trained {}; choose another "
                  "folder, or add --replace",
                  dir_.string(), run.variant.label, difference));
}

bool RunFiles::is_done(const RunSpec& run) const {
  if (!fs::exists(result(run))) return false;
  const auto found = read_run(result(run));
  return found && !found->failure;
}

bool RunFiles::has_failed(const RunSpec& run) const {
  return fs::exists(result(run)) && !is_done(run);
}

void RunFiles::finish(const CompareOptions& options, const RunSpec& run,
                      const RunEnding& ending) const {
  const std::string said = text_of(lines(run));
  std::string text = dump(head_of(options, run)) + "\n";
  if (!ending.begin.empty() && !said.starts_with(ending.begin)) text += ending.begin + "\n";
  text += said;
  if (!text.ends_with('\n')) text += '\n';
  std::vector<std::string> notes = run.notes;
  notes.insert(notes.end(), ending.notes.begin(), ending.notes.end());
  for (const std::string& note : notes) text += dump({{"event", "note"}, {"text", note}}) + "\n";
  const auto end_with = [&](const std::string& reason) {
    text += dump({{"event", "failure"}, {"reason", reason}}) + "\n";
    write_text(result(run), text);
  };
  if (ending.failure) {
    end_with(*ending.failure);
  } else {
    write_text(result(run), text);
    if (!read_run(result(run))) end_with("it ended without a summary");
  }
  fs::remove(lines(run));
  fs::remove_all(checkpoints(run));
}

}  // namespace syncopate::bench
