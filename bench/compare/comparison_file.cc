#include "bench/compare/comparison_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <nlohmann/json.hpp>
#include <ostream>
#include <set>
#include <stdexcept>
#include <tuple>

#include "bench/compare/comparison_difference.h"
#include "bench/compare/map_file.h"
#include "bench/compare/report/run_result.h"
#include "bench/harness/report.h"
#include "bench/plots/text.h"
#include "models/base/errors.h"
#include "models/base/random.h"
#include "models/base/replacing_file.h"

namespace syncopate::bench {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

constexpr std::array kPages = {"comparison.json", "report.html", "runs.csv",
                               "curves.csv",      "workers.csv", "staleness.csv"};

// A RunHead with its parsed line.
struct Head {
  std::string file;
  Json line;
};

// Returns comparison.json of the folder; an empty object if it is missing or damaged.
Json comparison_in(const fs::path& dir) {
  const Json found = Json::parse(text_of_file(dir / "comparison.json"), nullptr, false);
  return found.is_object() ? found : Json::object();
}

// Parses the first line of a run's file. A line that is not a JSON object becomes an empty one.
Head parsed(const RunHead& head) {
  const Json line = Json::parse(head.line, nullptr, false);
  return {head.file, line.is_object() ? line : Json::object()};
}

std::vector<Head> parsed(const std::vector<RunHead>& heads) {
  std::vector<Head> all;
  for (const RunHead& head : heads) all.push_back(parsed(head));
  return all;
}

// Returns the heads of the runs in the folder, by name.
std::vector<Head> heads_in(const fs::path& dir) {
  std::vector<Head> heads;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(dir / "runs", error)) {
    if (entry.path().extension() != ".jsonl") continue;
    std::ifstream in(entry.path(), std::ios::binary);
    std::string first;
    if (!std::getline(in, first)) continue;  // an empty file has no result
    heads.push_back(parsed(RunHead{entry.path().filename().string(), first}));
  }
  std::ranges::sort(heads, {}, &Head::file);
  return heads;
}

std::set<std::string> files_of(const std::vector<Head>& heads) {
  std::set<std::string> files;
  for (const Head& head : heads) files.insert(head.file);
  return files;
}

// Returns the names of the run files that comparison.json lists.
std::set<std::string> files_listed_in(const Json& comparison) {
  std::set<std::string> files;
  for (const Json& variant : value_at(comparison, "variants")) {
    for (const Json& file : value_at(variant, "runs")) {
      files.insert(fs::path(words_of(file)).filename().string());
    }
  }
  return files;
}

// Returns what a head says of its comparison, with the clock.
Json comparison_of(const Json& head) {
  Json comparison = value_at(head, "comparison");
  comparison["clock"] = value_at(head, "clock");
  return comparison;
}

bool is_tuned(const Head& head) {
  return value_at(value_at(head.line, "variant"), "learning_rate_rule") == "tuned";
}

// Returns how the comparison in the folder differs from the planned one, which may
// have more runs.
std::string difference_in(const fs::path& dir, const std::vector<Head>& heads,
                          const std::vector<Head>& planned) {
  if (fs::exists(dir / kTuningFolder) && std::ranges::none_of(planned, is_tuned)) {
    return "its variants are tuned, and this command has no --tune";
  }
  const Json wanted = comparison_of(planned.front().line);
  const Json found = comparison_in(dir);
  std::string difference;
  if (!found.empty()) difference = difference_of_comparisons(found, wanted);  // it may be missing
  if (!difference.empty()) return difference;
  const std::set<std::string> planned_files = files_of(planned);
  for (const std::string& file : files_listed_in(found)) {
    if (!heads.empty() || planned_files.contains(file)) continue;
    return fmt::format("this command leaves out {}", fs::path(file).stem().string());
  }
  for (const Head& head : heads) {
    if (head.line.empty()) return fmt::format("the first line of {} is damaged", head.file);
    difference = difference_of_comparisons(comparison_of(head.line), wanted);
    if (!difference.empty()) return difference;
    const auto same = std::ranges::find(planned, head.file, &Head::file);
    if (same == planned.end()) {
      return fmt::format("this command leaves out {} with seed {}",
                         words_of(value_at(head.line, "label")),
                         words_of(value_at(head.line, "seed")));
    }
    difference = difference_of_run(head.line, same->line);
    if (!difference.empty()) return difference;
  }
  return "";
}

// Whether the folder is missing or has nothing but what a comparison makes before its first file.
bool is_free(const fs::path& dir) {
  if (!fs::exists(dir)) return true;
  if (!fs::is_directory(dir)) return false;
  return std::ranges::all_of(fs::directory_iterator(dir), [](const fs::directory_entry& entry) {
    return entry.path().filename() == ".lock" ||
           (entry.path().filename() == "runs" && fs::is_empty(entry.path()));
  });
}

// Whether the folder has exactly the planned comparison.
bool has_comparison(const fs::path& dir, const std::vector<Head>& planned) {
  return files_listed_in(comparison_in(dir)) == files_of(planned) &&
         difference_in(dir, heads_in(dir), planned).empty();
}

// Whether the folder has exactly the planned comparisons, and runs are missing or failed.
bool is_interrupted(const fs::path& dir, const std::vector<PlannedFolder>& planned) {
  bool has_gap = false;
  bool is_after_round = false;
  for (const PlannedFolder& folder : planned) {
    const fs::path in = dir / folder.name;
    if (is_after_round && !fs::exists(in / "comparison.json")) return true;
    is_after_round = folder.is_round;
    const std::vector<Head> heads = parsed(folder.runs);
    if (!has_comparison(in, heads)) return false;
    has_gap = has_gap || !std::ranges::all_of(heads, [&](const Head& head) {
                const fs::path file = in / "runs" / head.file;
                return folder.is_round ? fs::exists(file) : is_run_done(file);
              });
  }
  return has_gap;
}

// Whether a run is missing, has failed or was disturbed by other processes.
bool is_trained_again(const fs::path& file) {
  if (!fs::exists(file)) return true;
  const auto run = read_run(file);
  return !run || run->failure || run->is_disturbed();
}

Json without_date(Json machine) {
  machine.erase("date");
  return machine;
}

// Adds a machine unless it is there already.
void add_machine(Json& machines, const Json& machine) {
  const bool is_there = std::ranges::any_of(
      machines, [&](const Json& one) { return without_date(one) == without_date(machine); });
  if (!is_there) machines.push_back(machine);
}

// Returns the machines that real runs name in their files.
Json machines_of_runs(const fs::path& dir, const std::vector<Head>& heads) {
  Json machines = Json::array();
  for (const Head& head : heads) {
    std::ifstream in(dir / "runs" / head.file, std::ios::binary);
    for (std::string text; std::getline(in, text);) {
      if (!text.starts_with(R"({"event":"machine")")) continue;
      Json machine = Json::parse(text, nullptr, false);
      if (!machine.is_object()) continue;
      machine.erase("event");
      machine.erase("others_cpu_share");
      add_machine(machines, machine);
    }
  }
  return machines;
}

// Returns the learning rate rule of a comparison of variants with these rules.
std::string rule_of_all(const std::set<std::string>& rules) {
  return rules.size() == 1 ? *rules.begin() : "mixed";
}

// Returns comparison.json without command and machines.
Json comparison_of_heads(const std::vector<Head>& heads) {
  Json comparison = comparison_of(heads.front().line);
  Json variants = Json::array();
  std::set<std::string> rules;
  for (const Head& head : heads) {
    const std::string label = head.line.at("label").get<std::string>();
    auto variant =
        std::ranges::find_if(variants, [&](const Json& one) { return one.at("label") == label; });
    if (variant == variants.end()) {
      Json added = {{"label", label}, {"workers", head.line.at("workers")}};
      added.update(head.line.at("variant"));
      added.erase("row");
      added["servers"] = head.line.at("servers");
      added["runs"] = Json::array();
      rules.insert(added.at("learning_rate_rule"));
      variants.push_back(added);
      variant = variants.end() - 1;
    }
    variant->at("runs").push_back("runs/" + head.file);
  }
  comparison["learning_rate_rule"] = rule_of_all(rules);
  comparison["variants"] = variants;
  return comparison;
}

void write_json(const fs::path& dir, const Json& comparison) {
  replace_file(dir / "comparison.json",
               comparison.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

// Returns "; 2 runs of these variants and seeds are missing"; "" if each of this number of variants
// has a run for each seed.
std::string gaps_words(const std::vector<Head>& heads, std::size_t variants) {
  std::set<std::string> seeds;
  for (const Head& head : heads) seeds.insert(words_of(value_at(head.line, "seed")));
  const std::size_t all = variants * seeds.size();
  if (all <= heads.size()) return "";
  const auto missing = static_cast<int>(all - heads.size());
  return fmt::format("; {} of these variants and seeds {} missing", count_text(missing, "run"),
                     missing == 1 ? "is" : "are");
}

void remove_comparison(const fs::path& dir) {
  if (has_map(dir)) {
    for (const std::string& name : clusters_in(dir)) remove_comparison(dir / name);
    fs::remove(dir / kMapFile);
  }
  for (const Head& head : heads_in(dir)) {
    for (const char* extension : {".jsonl", ".lines", ".log", ".checkpoints"}) {
      fs::remove_all((dir / "runs" / head.file).replace_extension(extension));
    }
  }
  fs::remove_all(dir / kTuningFolder);
  for (const char* page : kPages) fs::remove(dir / page);
}

}  // namespace

Json machine_json(const Machine& machine) {
  return {{"host", machine.host},     {"processor", machine.processor},
          {"cpus", machine.cpus},     {"cores", machine.cores},
          {"gpus", machine.gpus},     {"version", machine.version},
          {"commit", machine.commit}, {"instruction_set", machine.instruction_set},
          {"onednn", machine.onednn}, {"date", machine.date}};
}

std::string conflict_in(const fs::path& dir, const std::vector<RunHead>& planned) {
  if (has_map(dir)) return "has a comparison on several clusters";
  const std::vector<Head> heads = heads_in(dir);
  const std::string difference = difference_in(dir, heads, parsed(planned));
  if (difference.empty()) return "";
  if (heads.empty()) return "has another comparison, without runs: " + difference;
  std::set<std::string> labels;
  for (const Head& head : heads) labels.insert(words_of(value_at(head.line, "label")));
  return fmt::format(
      "has another comparison, {} of {}: {}", count_text(static_cast<int>(heads.size()), "run"),
      labels.size() == 1 ? *labels.begin() : count_text(static_cast<int>(labels.size()), "variant"),
      difference);
}

void require_planned(const fs::path& dir, const std::vector<RunHead>& planned) {
  const std::string difference = difference_in(dir, heads_in(dir), parsed(planned));
  if (difference.empty()) return;
  throw std::runtime_error(fmt::format(
      "{}: the runs are not those of the command in comparison.json: {}; restore the changed file",
      dir.string(), difference));
}

fs::path numbered_folder(const fs::path& base, const std::vector<PlannedFolder>& planned) {
  return numbered_folder(base, [&](const fs::path&) { return planned; });
}

fs::path numbered_folder(
    const fs::path& base,
    const std::function<std::vector<PlannedFolder>(const fs::path&)>& planned) {
  fs::path dir = base;
  for (int number = 2; !is_free(dir) && !is_interrupted(dir, planned(dir)); ++number) {
    dir = fmt::format("{}-{}", base.string(), number);
  }
  return dir;
}

void make_room(const fs::path& dir, const std::string& conflict, bool replace) {
  if (conflict.empty()) return;
  if (!replace) {
    throw UsageError(fmt::format(
        "--report {} {}; choose another folder, or add --replace to remove that comparison",
        dir.string(), conflict));
  }
  remove_comparison(dir);
}

void make_report_folder(const fs::path& dir, const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (!error) return;
  throw FileError(fmt::format("--report {}: cannot make the folder: {}; choose another one",
                              dir.string(), error.message()));
}

FolderLock lock_report(const fs::path& dir, const fs::path& folder,
                       const std::string& shared_command) {
  make_report_folder(dir, folder);
  // The text that identifies the job has one line.
  const std::string job =
      shared_command.empty() ? "" : fmt::format("{:016x}", hash_name(shared_command));
  return FolderLock(dir, {.flag = "--report", .user = "comparison", .job = job});
}

bool is_run_done(const fs::path& file) {
  if (!fs::exists(file)) return false;
  const auto run = read_run(file);
  return run && !run->failure;
}

void write_comparison_file(const fs::path& dir, const std::vector<RunHead>& planned,
                           const ComparisonFacts& facts) {
  const bool goes_on = facts.is_shared || std::ranges::any_of(planned, [&](const RunHead& head) {
                         return fs::exists(dir / "runs" / head.file);
                       });
  Json machines = goes_on ? value_at(comparison_in(dir), "machines") : Json();
  if (!machines.is_array()) machines = Json::array();
  const Json here = machine_json(facts.machine);
  const bool trains = std::ranges::any_of(
      planned, [&](const RunHead& head) { return is_trained_again(dir / "runs" / head.file); });
  if (machines.empty() || trains) add_machine(machines, here);
  Json comparison = {{"command", facts.command}, {"machines", machines}};
  comparison.update(comparison_of_heads(parsed(planned)));
  write_json(dir, comparison);
}

void restore_comparison_file(const fs::path& dir, std::ostream& out) {
  std::vector<Head> heads = heads_in(dir);
  if (fs::exists(dir / "comparison.json")) {
    const std::set<std::string> listed = files_listed_in(comparison_in(dir));
    std::erase_if(heads, [&](const Head& head) { return listed.contains(head.file); });
    if (heads.empty()) return;
    out << fmt::format(
        "{} in {} {} left out, because comparison.json does not name {}, such as {}; without "
        "comparison.json the report is made of all runs\n",
        count_text(static_cast<int>(heads.size()), "run"), (dir / "runs").string(),
        heads.size() == 1 ? "is" : "are", heads.size() == 1 ? "it" : "them", heads.front().file);
    return;
  }
  if (heads.empty()) return;  // reading comparison.json reports the error
  for (const Head& head : heads) {
    const std::string file = (dir / "runs" / head.file).string();
    const auto require = [&](const Json& object, std::initializer_list<const char*> keys) {
      for (const char* key : keys) {
        if (object.contains(key)) continue;
        throw FileError(
            fmt::format("{}: the first line has no \"{}\"; remove the file", file, key));
      }
    };
    require(head.line, {"label", "seed", "workers", "servers", "clock", "variant", "comparison"});
    require(head.line.at("variant"), {"row", "learning_rate_rule"});
    const std::string difference =
        difference_of_comparisons(comparison_of(heads.front().line), comparison_of(head.line));
    if (difference.empty()) continue;
    throw FileError(fmt::format(
        "{} and {} are of different comparisons: in the first, {}; move the files of one "
        "comparison to the folder runs of another folder",
        (dir / "runs" / heads.front().file).string(), head.file, difference));
  }
  std::ranges::stable_sort(heads, {}, [](const Head& head) {
    return std::tuple(head.line.at("variant").at("row").get<int>(),
                      head.line.at("seed").get<std::uint64_t>());
  });
  Json comparison = comparison_of_heads(heads);
  comparison["machines"] = machines_of_runs(dir, heads);
  write_json(dir, comparison);
  out << fmt::format("comparison.json was missing and was made from the {} in {}{}\n",
                     count_text(static_cast<int>(heads.size()), "run"), (dir / "runs").string(),
                     gaps_words(heads, comparison.at("variants").size()));
}

}  // namespace syncopate::bench
