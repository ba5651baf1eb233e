#include "deploy/slurm/job_script.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <iterator>
#include <sstream>

#include "models/base/errors.h"

namespace syncopate {
namespace {

constexpr std::string_view kNextComponent = "#SBATCH hetjob";

bool is_plain(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
         std::string_view("-_=+./:,@%").find(c) != std::string_view::npos;
}

JobScript script_named(std::string_view name) {
  const auto row = std::ranges::find(job_scripts(), name, &JobScriptRow::name);
  check(row != job_scripts().end(), "a job script of that name is in the program");
  return JobScript(row->text);
}

// The class Filling fills in the lines of a job script. A line that the script lacks is an internal
// error, because the scripts and this file must match.
class Filling {
 public:
  explicit Filling(std::string_view name) : script_(script_named(name)) {}

  void option(int component, std::string_view name, const std::string& value) {
    if (value.empty()) return;
    check(script_.set_option(component, name, value),
          "the job script has a line for --" + std::string(name));
  }
  void option(int component, std::string_view name, int value) {
    if (value > 0) option(component, name, std::to_string(value));
  }
  void option_of_all(std::string_view name, const std::string& value) {
    for (int component = 0; component < script_.components(); ++component) {
      option(component, name, value);
    }
  }
  void add_options(int component, const std::vector<std::pair<std::string, std::string>>& options) {
    for (const auto& [name, value] : options) script_.add_option(component, name, value);
  }
  void variable(std::string_view name, const std::string& shell_text) {
    check(script_.set_variable(name, shell_text),
          "the job script has a variable " + std::string(name));
  }
  void extend(std::string_view name, const std::vector<std::string>& words) {
    if (words.empty()) return;
    check(script_.extend_array(name, words),
          "the job script has an array " + std::string(name) + " in one line");
  }
  void stay_ended() {
    check(script_.rename_option("requeue", "no-requeue"), "the job script has --requeue");
  }
  void drop_edit_marks() { script_.drop_edit_marks(); }
  // Slurm takes --gpus-per-task only with a number of tasks.
  void count_tasks_of_gpus() {
    if (script_.text().find("\n#SBATCH --gpus-per-task=") == std::string::npos) return;
    const int tasks =
        script_.number_of(workers(), "nodes") * script_.number_of(workers(), "ntasks-per-node");
    script_.add_option(workers(), "ntasks", std::to_string(tasks));
  }
  // Returns the index of the job script's component that trains, which is the last one.
  int workers() const { return script_.components() - 1; }
  std::string text() const { return script_.text(); }

 private:
  JobScript script_;
};

void fill_in_servers(const SbatchOptions& options, Filling& filling) {
  if (options.servers == 0) return;
  if (filling.workers() == 0) {
    filling.variable("SERVERS", std::to_string(options.servers));
    return;
  }
  filling.option(0, "nodes", options.server_nodes);
  filling.option(0, "ntasks-per-node", options.servers / options.server_nodes);
}

void fill_in_program(const SbatchOptions& options, Filling& filling) {
  if (!options.container.empty()) {
    filling.variable("USE_CONTAINER", "true");
    filling.variable("CONTAINER", shell_word(options.container));
    if (!options.container_flags.empty()) {
      std::istringstream text(options.container_flags);
      const std::vector<std::string> words(std::istream_iterator<std::string>(text), {});
      filling.variable("CONTAINER_FLAGS", shell_array(words));
    }
  }
  if (!options.program.empty() && options.script != "build") {
    filling.variable("PROGRAM", shell_word(options.program));
  }
  if (!options.bench_program.empty() && options.script == "compare") {
    filling.variable("BENCH", shell_word(options.bench_program));
  }
}

// Takes --data out of the flags of train and returns its value; "" if it is not among them.
std::string take_data(std::vector<std::string>& words) {
  constexpr std::string_view kFlag = "--data";
  std::string data;
  for (auto word = words.begin(); word != words.end();) {
    const bool has_value = word->starts_with(std::string(kFlag) + "=");
    if (!has_value && (*word != kFlag || std::next(word) == words.end())) {
      ++word;
      continue;
    }
    data = has_value ? word->substr(kFlag.size() + 1) : *std::next(word);
    word = words.erase(word, std::next(word, has_value ? 1 : 2));
  }
  return data;
}

void fill_in_training(const SbatchOptions& options, Filling& filling) {
  std::vector<std::string> words = options.train_flags;
  // The script has --data "$DATA": the flag in TRAIN as well would make one of the two ineffective.
  const std::string data = take_data(words);
  if (options.strategy.empty()) {
    if (!data.empty()) filling.variable("DATA", shell_word(data));
    filling.extend("TRAIN", words);
    return;
  }
  words.insert(words.begin(), {"--strategy", options.strategy});
  filling.variable("TRAIN", shell_array(words));
  filling.variable("DATA", shell_word(options.data));
  if (options.uses_mpirun) filling.variable("LAUNCHER", "mpirun");
}

}  // namespace

JobScript::JobScript(std::string_view text) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines_.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

int JobScript::components() const {
  return 1 + static_cast<int>(std::ranges::count(lines_, kNextComponent));
}

bool JobScript::set_option(int component, std::string_view name, std::string_view value) {
  const std::string beginning = "#SBATCH --" + std::string(name) + "=";
  int current = 0;
  for (std::string& line : lines_) {
    if (line == kNextComponent) ++current;
    if (current != component) continue;
    if (!line.starts_with(beginning) && !line.starts_with("#" + beginning)) continue;
    line = beginning + std::string(value);
    return true;
  }
  return false;
}

int JobScript::number_of(int component, std::string_view name) const {
  const std::string beginning = fmt::format("#SBATCH --{}=", name);
  int current = 0;
  for (const std::string& line : lines_) {
    if (line == kNextComponent) ++current;
    if (current == component && line.starts_with(beginning)) {
      return std::max(1, std::atoi(line.c_str() + beginning.size()));
    }
  }
  return 1;
}

void JobScript::add_option(int component, std::string_view name, std::string_view value) {
  if (!value.empty() && set_option(component, name, value)) return;
  int current = 0;
  auto behind = lines_.end();
  for (auto line = lines_.begin(); line != lines_.end(); ++line) {
    if (*line == kNextComponent) {
      ++current;
    } else if (current == component && line->starts_with("#SBATCH --")) {
      behind = std::next(line);
    }
  }
  check(behind != lines_.end(), "each component of a job script has options");
  lines_.insert(behind, fmt::format("#SBATCH --{}{}{}", name, value.empty() ? "" : "=", value));
}

bool JobScript::rename_option(std::string_view name, std::string_view other) {
  const auto line = std::ranges::find(lines_, fmt::format("#SBATCH --{}", name));
  if (line == lines_.end()) return false;
  *line = fmt::format("#SBATCH --{}", other);
  return true;
}

void JobScript::drop_edit_marks() {
  constexpr std::string_view kCopy = "Copy it, change the five places marked EDIT, and submit it";
  constexpr std::string_view kMark = "# EDIT ";
  for (std::string& line : lines_) {
    if (const std::size_t at = line.find(kCopy); at != std::string::npos) {
      line.replace(at, kCopy.size(), "Submit it with sbatch");
    }
    const std::size_t end = line.find(": ");
    if (line.starts_with(kMark) && end != std::string::npos) line.replace(0, end + 1, "#");
  }
}

bool JobScript::set_variable(std::string_view name, std::string_view shell_text) {
  const std::string beginning = std::string(name) + "=";
  const auto line = std::ranges::find_if(
      lines_, [&](const std::string& text) { return text.starts_with(beginning); });
  if (line == lines_.end()) return false;
  *line = beginning + std::string(shell_text);
  return true;
}

bool JobScript::extend_array(std::string_view name, std::span<const std::string> words) {
  const std::string beginning = std::string(name) + "=(";
  const auto line = std::ranges::find_if(lines_, [&](const std::string& text) {
    return text.starts_with(beginning) && text.ends_with(')');
  });
  if (line == lines_.end()) return false;
  line->pop_back();
  for (const std::string& word : words) *line += " " + shell_word(word);
  *line += ')';
  return true;
}

std::string JobScript::text() const {
  std::string text;
  for (const std::string& line : lines_) text += line + "\n";
  return text;
}

std::string shell_word(std::string_view text) {
  if (!text.empty() && std::ranges::all_of(text, is_plain)) return std::string(text);
  std::string word = "'";
  // Within quotes, '\'' closes the quotes, adds an escaped quote, and opens quotes again.
  for (const char c : text) word += c == '\'' ? "'\\''" : std::string(1, c);
  return word + "'";
}

std::string shell_array(std::span<const std::string> words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + shell_word(word);
  return "(" + text + ")";
}

int nodes_of(const SbatchOptions& options) {
  if (options.nodes > 0) return options.nodes;
  const JobScript script = script_named(options.script);
  return script.number_of(script.components() - 1, "nodes");
}

int tasks_on_node(const SbatchOptions& options) { return std::max(1, options.tasks_per_node); }

std::string filled_script(const SbatchOptions& options) {
  Filling filling(options.script);
  filling.option_of_all("time", options.time);
  filling.option_of_all("account", options.account);
  filling.option(0, "job-name", options.job_name);
  if (filling.workers() > 0) {
    filling.option(0, "partition",
                   options.server_partition.empty() ? options.partition : options.server_partition);
  }
  filling.option(filling.workers(), "partition", options.partition);
  filling.option(filling.workers(), "nodes", options.nodes);
  if (options.script != "build") {
    filling.option(filling.workers(), "ntasks-per-node", options.tasks_per_node);
  }
  filling.option(filling.workers(), "cpus-per-task", options.cpus_per_task);
  filling.add_options(filling.workers(), options.resources);
  filling.count_tasks_of_gpus();
  for (int component = 0; component <= filling.workers(); ++component) {
    filling.add_options(component, options.other_options);
  }
  if (!options.array.empty()) {
    filling.add_options(0, {{"array", options.array}});
    const auto is_output = [](const auto& option) { return option.first == "output"; };
    if (std::ranges::none_of(options.other_options, is_output)) {
      filling.option(0, "output", "%x-%A-%a.out");
    }
  }
  if (!options.requeues && options.script != "build") filling.stay_ended();
  fill_in_servers(options, filling);
  fill_in_program(options, filling);
  fill_in_training(options, filling);
  filling.drop_edit_marks();
  return filling.text();
}

}  // namespace syncopate
