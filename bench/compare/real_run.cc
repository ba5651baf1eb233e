#include "bench/compare/real_run.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "bench/compare/kill_schedule.h"
#include "deploy/formatted.h"
#include "deploy/launch/role_process.h"
#include "models/base/deadline.h"
#include "models/base/environment.h"
#include "models/base/errors.h"

namespace syncopate::bench {
namespace {

constexpr std::chrono::milliseconds kTick(100);
constexpr std::chrono::milliseconds kLook(500);  // between two looks at how far it is
constexpr std::chrono::seconds kLastWord(30);    // from a request to stop to being killed
constexpr std::size_t kLongestTail = 1U << 16;   // of its lines, to find the last step in

// Passes what the run says to its log, and remembers the last line.
class Log {
 public:
  explicit Log(const std::filesystem::path& path)
      : path_(path), file_(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)) {
    if (!file_) throw FileError(describe_errno("open the log", path_.string(), errno));
  }

  // False at the end of the stream.
  bool read_from(int descriptor) {
    std::array<char, 4096> buffer{};
    for (;;) {
      const ssize_t count = ::read(descriptor, buffer.data(), buffer.size());
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return errno == EAGAIN;
      if (count == 0) return false;
      keep({buffer.data(), static_cast<std::size_t>(count)});
    }
  }

  std::string last_line() const { return line_.empty() ? last_ : line_; }

 private:
  void keep(std::string_view text) {
    // A full disk shows where it matters: in the run's own files.
    [[maybe_unused]] const ssize_t written = ::write(file_.get(), text.data(), text.size());
    for (const char c : text) {
      if (c != '\n') {
        line_ += c;
      } else if (!line_.empty()) {
        last_ = std::exchange(line_, {});
      }
    }
  }

  std::filesystem::path path_;
  FileDescriptor file_;
  std::string line_;
  std::string last_;
};

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
  command.insert(command.end(), run.flags.begin(), run.flags.end());
  command.insert(command.end(), {"--metrics", options.metrics.string()});
  if (restarts) {
    command.insert(command.end(), {"--checkpoint-dir", options.checkpoints.string()});
  }
  return command;
}

RealRunOutcome run_really(const RunSpec& run, const RealRunOptions& options, StopSignal& signals,
                          ProgressDisplay& display) {
  std::filesystem::remove(options.metrics);
  Log log(options.log);
  RoleProcess process({.name = run.variant.label,
                       .arguments = command_of(run, options),
                       .environment = Environment::of_process().variables()},
                      signals.previous_mask());
  std::array<FileDescriptor, 2> streams = {process.take_out(), process.take_err()};
  std::vector<Kill> of_tasks = options.kills;
  for (Kill& kill : of_tasks) kill.worker = run.variant.has_tasks() ? kill.worker : 0;
  KillSchedule kills(std::move(of_tasks), process.pid());
  std::optional<Deadline::Clock::time_point> trained_since;  // when its first line was seen
  std::optional<Deadline> last_word;                         // after a request to stop
  Deadline next_look = Deadline::after(kLook);
  while (process.is_running()) {
    std::array<pollfd, 4> polled{pollfd{process.descriptor(), POLLIN, 0},
                                 pollfd{signals.descriptor(), POLLIN, 0},
                                 pollfd{streams[0] ? streams[0].get() : -1, POLLIN, 0},
                                 pollfd{streams[1] ? streams[1].get() : -1, POLLIN, 0}};
    ::poll(polled.data(), polled.size(), static_cast<int>(kTick.count()));
    for (std::size_t s = 0; s < streams.size(); ++s) {
      if (polled[2 + s].revents != 0 && !log.read_from(streams[s].get())) streams[s] = {};
    }
    if (const auto signal = signals.poll_number()) {
      process.ask_to_stop(*signal);
      last_word = Deadline::after(kLastWord);
    }
    if (last_word && last_word->passed()) process.send(SIGKILL);
    if (!trained_since && last_step(options.metrics)) trained_since = Deadline::Clock::now();
    if (trained_since) {
      kills.act(std::chrono::duration<double>(Deadline::Clock::now() - *trained_since).count());
    }
    if (next_look.passed()) {
      show(options, display);
      next_look = Deadline::after(kLook);
    }
    if (polled[0].revents == 0) continue;
    for (FileDescriptor& stream : streams) {
      if (stream) log.read_from(stream.get());
    }
    const RoleEnding ending = process.reap();
    if (last_word) return {RunEnd::kStopped, ""};
    if (ending.is_good()) return {RunEnd::kDone, ""};
    const std::string said = log.last_line();
    return {RunEnd::kFailed, said.empty() ? "it " + describe(ending) : said};
  }
  throw InternalError("a run's process ends only here");
}

}  // namespace syncopate::bench
