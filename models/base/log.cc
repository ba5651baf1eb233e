#include "models/base/log.h"

#include <fmt/format.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <memory>

namespace syncopate {
namespace {

// The log's settings, the only mutable global of the project; set before any thread starts.
std::shared_ptr<spdlog::logger>& logger() {
  static std::shared_ptr<spdlog::logger> instance = [] {
    auto made = std::make_shared<spdlog::logger>("syncopate",
                                                 std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made->set_pattern("[syncopate] %l: %v");
    return made;
  }();
  return instance;
}

spdlog::level::level_enum to_spdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
  }
  return spdlog::level::info;
}

}  // namespace

void log(LogLevel level, std::string_view message) {
  logger()->log(to_spdlog(level), "{}", message);
}

void set_log_prefix(std::string_view prefix, LogLevel lowest_shown) {
  logger()->set_pattern(fmt::format("[{}] %l: %v", prefix));
  logger()->set_level(to_spdlog(lowest_shown));
}

}  // namespace syncopate
