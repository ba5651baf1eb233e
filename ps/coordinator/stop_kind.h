// Requests to end a job early, by kind. A kind travels between tasks as its number
// (wire_conversion.h), so the order of the enumerators must not change.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace syncopate::ps {

enum class StopKind : std::uint8_t {
  kSigint,
  kSigterm,
  kSigusr1,
  kRequest,  // any other stop request
  // --max-seconds have passed, or a rule that judges evaluations has ended training. The job is
  // then complete, and its result is evaluated. A job that is stopped for another reason ends
  // without an evaluation.
  kComplete,
  kSighup,
  kSigusr2,
  kSigxcpu,
};
inline constexpr std::size_t kStopKinds = 8;

// The names of the stop requests, indexed by StopKind.
inline constexpr std::array<std::string_view, kStopKinds> kStopNames = {
    "SIGINT", "SIGTERM", "SIGUSR1", "a request", "--max-seconds", "SIGHUP", "SIGUSR2", "SIGXCPU"};

constexpr std::string_view stop_name(StopKind kind) noexcept {
  return kStopNames[static_cast<std::size_t>(kind)];
}
// Returns the kind of stop request with this name; kRequest for an unknown name.
constexpr StopKind stop_kind(std::string_view name) noexcept {
  for (std::size_t kind = 0; kind < kStopKinds; ++kind) {
    if (kStopNames[kind] == name) return static_cast<StopKind>(kind);
  }
  return StopKind::kRequest;
}

// StopCounts counts the tasks that were asked to stop, for each kind of request.
struct StopCounts {
  std::array<int, kStopKinds> by_kind{};

  int& operator[](StopKind kind) noexcept { return by_kind[static_cast<std::size_t>(kind)]; }
  int operator[](StopKind kind) const noexcept { return by_kind[static_cast<std::size_t>(kind)]; }
  StopCounts& operator+=(const StopCounts& more) noexcept {
    for (std::size_t kind = 0; kind < kStopKinds; ++kind) by_kind[kind] += more.by_kind[kind];
    return *this;
  }
  bool operator==(const StopCounts&) const = default;
  // Returns the kind of stop request, other than kComplete, that at least one task has had; the
  // lowest of several kinds.
  std::optional<StopKind> early_stop() const noexcept {
    for (std::size_t kind = 0; kind < kStopKinds; ++kind) {
      const auto found = static_cast<StopKind>(kind);
      if (found != StopKind::kComplete && by_kind[kind] > 0) return found;
    }
    return std::nullopt;
  }
};

}  // namespace syncopate::ps
