#include "bench/compare/run_files.h"

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "bench/compare/report/text.h"
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

std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// The flags that a finished run was started with; nothing where there is no such file.
std::optional<std::vector<std::string>> flags_in(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::string first;
  if (!in || !std::getline(in, first)) return std::nullopt;
  const Json run = Json::parse(first, nullptr, false);
  if (!run.is_object() || !run.contains("flags")) return std::vector<std::string>{};
  return run.at("flags").get<std::vector<std::string>>();
}

Json head_of(const RunSpec& run) {
  return {{"event", "run"},
          {"label", run.variant.label},
          {"seed", run.seed},
          {"workers", run.variant.workers},
          {"servers", run.variant.servers},
          {"flags", run.flags}};
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

std::string budget_words(const CompareOptions& options) {
  if (options.budget == Budget::kUpdates) return std::to_string(options.updates) + " updates";
  if (options.budget == Budget::kSeconds) return exact_text(options.seconds) + " s of training";
  return std::to_string(options.epochs) + " epochs of " + options.data;
}

}  // namespace

RunFiles::RunFiles(fs::path dir) : dir_(std::move(dir)) {
  std::error_code error;
  fs::create_directories(dir_ / "runs", error);
  if (error) {
    throw FileError("--report " + dir_.string() + ": cannot make the folder: " + error.message() +
                    "; choose another one");
  }
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
                     const std::string& command) const {
  for (const RunSpec& run : runs) check_flags(run, options.replace);
  Json variants = Json::array();
  for (const Variant& variant : options.variants) {
    Json files = Json::array();
    for (const RunSpec& run : runs) {
      if (run.variant.label == variant.label) {
        files.push_back((fs::path("runs") / result(run).filename()).string());
      }
    }
    variants.push_back({{"label", variant.label}, {"workers", variant.workers}, {"runs", files}});
  }
  const Json comparison = {{"command", command},
                           {"model", options.model},
                           {"data", options.data},
                           {"target_accuracy", options.target_accuracy},
                           {"budget", budget_words(options)},
                           {"clock", options.clock == Clock::kVirtual ? "virtual" : "real"},
                           {"trouble", joined(options.trouble_words)},
                           {"variants", variants}};
  write_text(dir_ / "comparison.json", comparison.dump(2) + "\n");
}

void RunFiles::check_flags(const RunSpec& run, bool replace) const {
  const auto flags = flags_in(result(run));
  if (!flags || *flags == run.flags) return;
  if (replace) {
    fs::remove(result(run));
    return;
  }
  throw UsageError("--report " + dir_.string() + " has another comparison, in which " +
                   run.variant.label + " was trained with other flags; choose another folder, or " +
                   "add --replace");
}

bool RunFiles::is_done(const RunSpec& run) const { return fs::exists(result(run)); }

void RunFiles::finish(const RunSpec& run, const std::optional<std::string>& failure) const {
  std::string text = dump(head_of(run)) + "\n" + text_of(lines(run));
  if (!text.ends_with('\n')) text += '\n';
  if (failure) text += dump({{"event", "failure"}, {"reason", *failure}}) + "\n";
  write_text(result(run), text);
  fs::remove(lines(run));
  fs::remove_all(checkpoints(run));
}

}  // namespace syncopate::bench
