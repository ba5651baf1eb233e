#include "bench/compare/real_run.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "bench/compare/kill_schedule.h"
#include "bench/compare/run_log.h"
#include "deploy/launch/role_process.h"
#include "models/base/deadline.h"
#include "models/base/environment.h"
#include "models/base/errors.h"
#include "models/base/formatted.h"
#include "worker/train/metrics.h"

namespace syncopate::bench {
namespace {

constexpr std::chrono::milliseconds kTick(100);
constexpr std::chrono::milliseconds kTickOfKills(10);  // they come at their time
constexpr std::chrono::milliseconds kLook(500);        // between two looks at how far it is
constexpr std::chrono::seconds kLastWord(30);          // from a request to stop to being killed
constexpr std::size_t kLongestTail = 1U << 16;         // of its lines, to find the last step in

// The first line of a file that is being written says when training began: by the wall clock, in
// seconds. Nothing: it has not yet.
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

// The last whole step line of a file that is being written.
std::optional<nlohmann::json> last_step(const std::filesystem::path& metrics) {
  std::ifstream in(metrics, std::ios::binary | std::ios::ate);
  if (!in) return std::nullopt;
  const auto size = static_cast<std::size_t>(in.tellg());
  const std::size_t length = std::min(size, kLongestTail);
  std::string tail(length, '\0');
  in.seekg(static_cast<std::streamoff>(size - length));
  in.read(tail.data(), static_cast<std::streamsize>(length));
  const std::size_t at = tail.rfind("{\"event\":\"step\"");
  if (at == std::string::npos) return std::nullopt;
  const std::size_t end = tail.find('\n', at);
  if (end == std::string::npos) return std::nullopt;
  const auto line = nlohmann::json::parse(tail.substr(at, end - at), nullptr, false);
  if (!line.is_object()) return std::nullopt;
  return line;
}

double number_in(const nlohmann::json& line, const char* key) {
  const auto at = line.find(key);
  return at != line.end() && at->is_number() ? at->get<double>() : 0.0;
}

void show(const RealRunOptions& options, ProgressDisplay& display) {
  const auto line = last_step(options.metrics);
  if (!line) return;
  const double step = number_in(*line, "step");
  const double rate = step > 0.0 ? number_in(*line, "seconds") / step : 0.0;
  const double total = options.max_seconds > 0.0 && rate > 0.0
                           ? options.max_seconds / rate
                           : static_cast<double>(options.total_updates);
  display.update({.epoch = 1,
                  .total_epochs = 1,
                  .step = static_cast<std::int64_t>(step),
                  .total_steps = static_cast<std::int64_t>(total),
                  .loss = number_in(*line, "loss"),
                  .accuracy = number_in(*line, "accuracy"),
                  .samples_per_second = number_in(*line, "samples_per_second"),
                  .remaining_seconds = rate * std::max(0.0, total - step)});
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
      // Of all alike: see RealRunOptions.
      const double after = options.kills.front().restart_seconds.value_or(0.0);
      command.insert(command.end(), {"--restart", std::to_string(options.kills.size()),
                                     "--restart-after", formatted("%g", after)});
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
    // As often as it evaluates: what is lost with a process is less than that.
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
  RoleProcess process({.name = run.variant.label,
                       .arguments = command_of(run, options),
                       .environment = Environment::of_process().variables()},
                      signals.previous_mask());
  std::array<FileDescriptor, 2> streams = {process.take_out(), process.take_err()};
  std::vector<Kill> of_tasks = options.kills;
  for (Kill& kill : of_tasks) kill.worker = run.variant.has_tasks() ? kill.worker : 0;
  KillSchedule kills(std::move(of_tasks), process.pid());
  std::optional<Begin> begin;
  std::optional<Deadline> last_word;  // after a request to stop
  Deadline next_look = Deadline::after(kLook);
  while (process.is_running()) {
    std::array<pollfd, 4> polled{pollfd{process.descriptor(), POLLIN, 0},
                                 pollfd{signals.descriptor(), POLLIN, 0},
                                 pollfd{streams[0] ? streams[0].get() : -1, POLLIN, 0},
                                 pollfd{streams[1] ? streams[1].get() : -1, POLLIN, 0}};
    const bool awaits_kills = !kills.left().empty();
    const auto tick = awaits_kills ? kTickOfKills : kTick;
    ::poll(polled.data(), polled.size(), static_cast<int>(tick.count()));
    for (std::size_t s = 0; s < streams.size(); ++s) {
      if (polled[2 + s].revents != 0 && !log.read_from(s, streams[s].get())) streams[s] = {};
    }
    if (const auto signal = signals.poll_number()) {
      process.ask_to_stop(*signal);
      last_word = Deadline::after(kLastWord);
    }
    if (last_word && last_word->passed()) process.send(SIGKILL);
    if (awaits_kills && !begin) begin = first_begin(options.metrics);
    if (begin) kills.act(wall_clock_seconds() - begin->began_at);
    if (next_look.passed()) {
      show(options, display);
      next_look = Deadline::after(kLook);
    }
    if (polled[0].revents == 0) continue;
    for (std::size_t s = 0; s < streams.size(); ++s) {
      if (streams[s]) log.read_from(s, streams[s].get());
    }
    const RoleEnding ending = process.reap();
    if (last_word) return {.end = RunEnd::kStopped};
    RealRunOutcome outcome;
    if (begin) outcome.begin = begin->line;
    for (const Kill& kill : kills.left()) {
      outcome.notes.push_back(never_took_place(kill));
    }
    const bool only_wanted =
        log.tells_of_none_but(kills.killed_roles()) && has_summary(options.metrics);
    if (ending.is_good() || only_wanted) return outcome;
    const std::string said = log.reason(kills.killed_roles());
    outcome.end = RunEnd::kFailed;
    outcome.reason = said.empty() ? "it " + describe(ending) : said;
    return outcome;
  }
  throw InternalError("a run's process ends only here");
}

}  // namespace syncopate::bench
