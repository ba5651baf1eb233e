#include "bench/compare/archive.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

#include "bench/compare/map_file.h"
#include "bench/compare/report/comparison.h"
#include "bench/compare/report/machine.h"
#include "bench/harness/report.h"
#include "bench/harness/scratch_folder.h"
#include "models/base/errors.h"
#include "models/base/replacing_file.h"

namespace syncopate::bench {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kEnding = ".tar.gz";

// The files of a comparison or of a map, besides those in its folders.
constexpr std::array kFiles = {"comparison.json", "report.html", "runs.csv",
                               "curves.csv",      "workers.csv", "staleness.csv",
                               kMapFile,          "map.svg",     "map.csv"};

// Copies the files with this extension from the folder `from` to the folder `to`.
void copy_files(const fs::path& from, const fs::path& to, std::string_view extension) {
  if (!fs::is_directory(from)) return;
  fs::create_directories(to);
  for (const fs::directory_entry& entry : fs::directory_iterator(from)) {
    if (!entry.is_regular_file() || entry.path().extension() != extension) continue;
    fs::copy_file(entry.path(), to / entry.path().filename());
  }
}

// Copies a comparison, with the rounds of its tuning, or a map with its clusters.
void copy_comparison(const fs::path& from, const fs::path& to) {
  fs::create_directories(to);
  for (const char* name : kFiles) {
    if (fs::is_regular_file(from / name)) fs::copy_file(from / name, to / name);
  }
  copy_files(from / "plots", to / "plots", ".svg");
  copy_files(from / "runs", to / "runs", ".jsonl");
  for (int round = 1; fs::exists(round_folder(from, round)); ++round) {
    copy_comparison(round_folder(from, round), round_folder(to, round));
  }
  if (!has_map(from)) return;
  for (const std::string& cluster : clusters_in(from))
    copy_comparison(from / cluster, to / cluster);
}

std::string readme_of(const fs::path& dir, const std::string& name) {
  const fs::path first = has_map(dir) ? dir / clusters_in(dir).front() : dir;
  const Comparison comparison = read_comparison(first);
  std::string text = fmt::format(
      "A comparison of training strategies by syncopate. report.html shows the results.\n\n"
      "Command:          {}\n"
      "Hash of the data: {}\n"
      "Network:          {}, hash {}\n",
      comparison.command, comparison.data_hash, comparison.model, comparison.network_hash);
  for (const Machine& machine : comparison.machines) {
    text += fmt::format("Machine:          {}\n", describe(machine));
  }
  return text +
         fmt::format(
             "\nThis command trains one run of each variant again and compares the results:\n"
             "  syncopate-bench report {} --verify\n"
             "If the data set is not where the command above says, add --data to it.\n",
             shell_word(name));
}

// Waits for the process and returns its status. Kills it and throws FileError after 10 minutes.
int wait_for(pid_t process) {
  constexpr std::chrono::minutes kLongest{10};
  constexpr std::chrono::milliseconds kPoll{10};
  const auto end = std::chrono::steady_clock::now() + kLongest;
  int status = 0;
  while (::waitpid(process, &status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() >= end) {
      ::kill(process, SIGKILL);
      ::waitpid(process, &status, 0);
      throw FileError(fmt::format("tar did not end within {} minutes", kLongest.count()));
    }
    std::this_thread::sleep_for(kPoll);
  }
  return status;
}

// Runs tar. errors: a file for its messages.
void run_tar(std::vector<std::string> words, const fs::path& errors) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions{};
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, errors.c_str(), O_WRONLY | O_CREAT,
                                   0600);
  pid_t tar = -1;
  const int error =
      ::posix_spawnp(&tar, arguments.front(), &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) {
    throw FileError(fmt::format("the program {} cannot be started ({}); install it, or set PATH",
                                words.front(), std::generic_category().message(error)));
  }
  if (wait_for(tar) == 0) return;
  const std::string message = text_of_file(errors);
  throw FileError(message.empty() ? "tar failed" : message.substr(0, message.find('\n')));
}

}  // namespace

void require_new_archive(const fs::path& file) {
  const std::string name = file.filename().string();
  if (!name.ends_with(kEnding) || name.size() == kEnding.size()) {
    throw UsageError(
        fmt::format("--archive {}: expected a name that ends with {}", file.string(), kEnding));
  }
  if (fs::exists(fs::symlink_status(file))) {
    throw UsageError(fmt::format(
        "--archive {}: exists already; give another name, or remove it first", file.string()));
  }
}

void write_archive(const fs::path& dir, const fs::path& file) {
  const std::string file_name = file.filename().string();
  const std::string name = file_name.substr(0, file_name.size() - kEnding.size());
  const fs::path part =
      fmt::format("{}.{}{}", file.string(), ::getpid(), ReplacingFile::kTemporarySuffix);
  try {
    const ScratchFolder scratch;
    copy_comparison(dir, scratch.path() / name);
    replace_file(scratch.path() / name / "README.txt", readme_of(dir, name));
    run_tar(
        {"tar", "-czf", fs::absolute(part).string(), "-C", scratch.path().string(), "./" + name},
        scratch.path() / "errors");
    fs::rename(part, file);
  } catch (const std::exception& error) {
    std::error_code ignored;
    fs::remove(part, ignored);
    throw FileError(
        fmt::format("--archive {}: cannot be written: {}", file.string(), error.what()));
  }
}

}  // namespace syncopate::bench
