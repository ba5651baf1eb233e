#include "bench/compare/real_run.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "bench/compare/run_log.h"
#include "bench/harness/machine_load.h"
#include "bench/harness/measure.h"
#include "bench/harness/report.h"
#include "deploy/launch/role_process.h"
#include "models/base/deadline.h"
#include "models/base/environment.h"
#include "models/base/errors.h"
#include "models/base/process_limits.h"
#include "worker/train/metrics.h"

namespace syncopate::bench {
namespace {

constexpr std::chrono::milliseconds kPollInterval(100);
// The interval between looks at the processes; a short one makes kills happen on time.
constexpr std::chrono::milliseconds kPollIntervalOfKills(10);
// The interval between reads of the metrics file.
constexpr std::chrono::milliseconds kReadInterval(500);
constexpr std::chrono::seconds kStopTimeout(30);  // from a request to stop to SIGKILL
constexpr std::size_t kLongestTail = 1U << 16;    // bytes of the metrics to find the last line in

// True if the environment that launch gave to the process names this worker.
bool is_worker(pid_t process, int index) {
  const std::string zero(1, '\0');
  const std::string variables = zero + text_of_file(fmt::format("/proc/{}/environ", process));
  const auto has = [&](const std::string& variable) {
    return variables.find(zero + variable + zero) != std::string::npos;
  };
  return has("SYNCOPATE_ROLE=worker") && has(fmt::format("SYNCOPATE_INDEX={}", index));
}

std::optional<pid_t> find_worker(pid_t launcher, int index) {
  std::ifstream children(fmt::format("/proc/{0}/task/{0}/children", launcher));
  for (pid_t child = 0; children >> child;) {
    if (is_worker(child, index)) return child;
  }
  return std::nullopt;
}

// Kills the workers of a run at their scheduled times. One thread only.
class KillSchedule {
 public:
  // Kills workers of the job that the process `launcher`, a `syncopate launch`, has started.
  KillSchedule(std::vector<Kill> kills, pid_t launcher)
      : kills_(std::move(kills)), launcher_(launcher) {}

  // Sends SIGKILL to the workers that are due to be killed. A worker that is being restarted is
  // killed as soon as its process exists.
  void act(double seconds_trained) {
    std::erase_if(kills_, [&](const Kill& kill) {
      if (kill.at_seconds > seconds_trained) return false;
      const auto worker = find_worker(launcher_, kill.worker);
      if (!worker || ::kill(*worker, SIGKILL) != 0) return false;
      killed_roles_.insert(fmt::format("worker {}", kill.worker));
      return true;
    });
  }
  const std::vector<Kill>& left() const noexcept { return kills_; }  // kills that are still to come
  // The names of the killed workers in the output of launch, such as "worker 1".
  const std::set<std::string>& killed_roles() const noexcept { return killed_roles_; }

 private:
  std::vector<Kill> kills_;  // kills that have not happened yet
  std::set<std::string> killed_roles_;
  pid_t launcher_;
};

// Reads the first line of the metrics, which has the time at which training began, in seconds of
// the wall clock. Empty if it has not been written yet.
struct Begin {
  std::string line;
  double began_at = 0.0;
};
std::optional<Begin> first_begin(const std::filesystem::path& metrics) {
  std::ifstream in(metrics, std::ios::binary);
  std::string first;
  if (!in || !std::getline(in, first) || in.eof()) return std::nullopt;
  const auto line = nlohmann::json::parse(first, nullptr, false);
  if (!line.is_object() || line.value("event", "") != "begin") return std::nullopt;
  return Begin{first, line.value("began_at", 0.0)};
}

bool has_summary(const std::filesystem::path& metrics) {
  std::ifstream in(metrics, std::ios::binary);
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("{\"event\":\"summary\"")) return true;
  }
  return false;
}

// Reads the last complete line of metrics that are being written, if it is a step or an evaluation.
std::optional<nlohmann::json> last_progress_line(const std::filesystem::path& metrics) {
  std::ifstream in(metrics, std::ios::binary | std::ios::ate);
  if (!in) return std::nullopt;
  const auto size = static_cast<std::size_t>(in.tellg());
  const std::size_t length = std::min(size, kLongestTail);
  std::string tail(length, '\0');
  in.seekg(static_cast<std::streamoff>(size - length));
  in.read(tail.data(), static_cast<std::streamsize>(length));
  const auto start_of = [&](const char* event) {
    const std::size_t at = tail.rfind(fmt::format("{{\"event\":\"{}\"", event));
    return at != std::string::npos && tail.find('\n', at) != std::string::npos
               ? static_cast<std::ptrdiff_t>(at)
               : std::ptrdiff_t{-1};
  };
  const std::ptrdiff_t at = std::max(start_of("step"), start_of("eval"));
  if (at < 0) return std::nullopt;
  const auto begin = static_cast<std::size_t>(at);
  const auto line =
      nlohmann::json::parse(tail.substr(begin, tail.find('\n', begin) - begin), nullptr, false);
  return line.is_object() ? std::optional(line) : std::nullopt;
}

double number_in(const nlohmann::json& line, const char* key) {
  const auto at = line.find(key);
  return at != line.end() && at->is_number() ? at->get<double>() : 0.0;
}

// Describes a run's progress: "step 120/468, loss 0.0612, 41203 samples/s", "evaluated step
// 120/468" or "starting".
std::string progress_text(const RealRunOptions& options) {
  const auto line = last_progress_line(options.metrics);
  if (!line) return "starting";
  const double step = number_in(*line, "step");
  const bool is_step = line->value("event", "") == "step";
  std::string count = fmt::format("{:.0f}", step);
  if (options.max_seconds <= 0.0) count += fmt::format("/{}", options.total_updates);
  if (!is_step) return fmt::format("evaluated step {}", count);
  return fmt::format("step {}, loss {:.4f}, {:.0f} samples/s", count, number_in(*line, "loss"),
                     number_in(*line, "samples_per_second"));
}

}  // namespace

std::vector<std::string> command_of(const RunSpec& run, const RealRunOptions& options) {
  const Variant& variant = run.variant;
  std::vector<std::string> command = {options.program.string()};
  const bool has_tasks = variant.has_tasks();
  const bool restarts = !options.kills.empty() && options.kills.front().restart_seconds.has_value();
  if (has_tasks || !options.kills.empty() || !options.joins.empty()) {
    command.insert(command.end(),
                   {"launch", "--workers", std::to_string(has_tasks ? variant.workers : 1)});
    if (variant.servers > 0) {
      command.insert(command.end(), {"--servers", std::to_string(variant.servers)});
    }
    if (restarts) {
      // All kills have one restart_seconds (RealRunOptions), as launch restarts all workers alike.
      const double after = options.kills.front().restart_seconds.value_or(0.0);
      command.insert(command.end(), {"--restart", std::to_string(options.kills.size()),
                                     "--restart-after", fmt::format("{:g}", after)});
    }
    for (const Join& join : options.joins) {
      command.insert(command.end(), {"--join", to_string(join)});
    }
    command.emplace_back("--");
  }
  command.emplace_back("train");
  TrainOptions train = run.train;
  train.metrics = options.metrics;
  if (restarts) {
    // Checkpoints come with each evaluation, so a kill loses fewer steps than lie between two.
    train.loop.checkpoint_dir = options.checkpoints;
    train.loop.checkpoint_every_steps = train.loop.eval_every_steps;
  }
  const std::vector<std::string> words = command_line_of(train);
  command.insert(command.end(), words.begin(), words.end());
  return command;
}

RealRunOutcome run_really(const RunSpec& run, const RealRunOptions& options, StopSignal& signals,
                          ProgressDisplay& display) {
  if (!run.refusal.empty()) return {.end = RunEnd::kFailed, .reason = run.refusal};
  std::filesystem::remove(options.metrics);
  RunLog log(options.log);
  const OthersMeter others;
  MemoryKills memory_kills;
  RoleProcess process({.name = run.variant.label,
                       .arguments = command_of(run, options),
                       .environment = Environment::of_process().variables()},
                      signals.previous_mask());
  std::array<FileDescriptor, 2> streams = {process.take_out(), process.take_err()};
  std::vector<Kill> of_tasks = options.kills;
  for (Kill& kill : of_tasks) kill.worker = run.variant.has_tasks() ? kill.worker : 0;
  KillSchedule kills(std::move(of_tasks), process.pid());
  std::optional<Begin> begin;
  std::optional<Deadline> stop_deadline;  // set by a request to stop
  const auto began = SteadyClock::now();
  Deadline next_read = Deadline::after(kReadInterval);
  std::string progress = "starting";
  while (process.is_running()) {
    std::array<pollfd, 4> polled{pollfd{process.descriptor(), POLLIN, 0},
                                 pollfd{signals.descriptor(), POLLIN, 0},
                                 pollfd{streams[0] ? streams[0].get() : -1, POLLIN, 0},
                                 pollfd{streams[1] ? streams[1].get() : -1, POLLIN, 0}};
    const bool awaits_kills = !kills.left().empty();
    const auto tick = awaits_kills ? kPollIntervalOfKills : kPollInterval;
    ::poll(polled.data(), polled.size(), static_cast<int>(tick.count()));
    for (std::size_t s = 0; s < streams.size(); ++s) {
      if (polled[2 + s].revents != 0 && !log.read_from(s, streams[s].get())) streams[s] = {};
    }
    if (const auto signal = signals.poll_number()) {
      process.ask_to_stop(*signal);
      stop_deadline = Deadline::after(kStopTimeout);
    }
    if (stop_deadline && stop_deadline->passed()) process.send(SIGKILL);
    if (awaits_kills && !begin) begin = first_begin(options.metrics);
    if (begin) kills.act(wall_clock_seconds() - begin->began_at);
    memory_kills.look();
    if (next_read.passed()) {
      progress = progress_text(options);
      next_read = Deadline::after(kReadInterval);
    }
    display.update({.text = fmt::format("{}: {}, {:.0f} s", options.progress_name, progress,
                                        seconds_since(began))});
    if (polled[0].revents == 0) continue;
    for (std::size_t s = 0; s < streams.size(); ++s) {
      if (streams[s]) log.read_from(s, streams[s].get());
    }
    const RoleEnding ending = process.reap();
    if (stop_deadline) return {.end = RunEnd::kStopped};
    RealRunOutcome outcome;
    outcome.others_cpu_share = others.share();
    if (begin) outcome.begin = begin->line;
    for (const Kill& kill : kills.left()) {
      outcome.notes.push_back(never_took_place(kill));
    }
    const bool only_wanted =
        log.has_only_wanted_failures(kills.killed_roles()) && has_summary(options.metrics);
    if (ending.is_good() || only_wanted) return outcome;
    const std::string killed = ending.signal == SIGKILL ? memory_kills.reason() : "";
    const std::string last_error = killed.empty() ? log.reason(kills.killed_roles()) : "";
    outcome.end = RunEnd::kFailed;
    outcome.reason = last_error.empty() ? "it " + describe(ending) + killed : last_error;
    return outcome;
  }
  throw InternalError("a run's process ends only here");
}

}  // namespace syncopate::bench
