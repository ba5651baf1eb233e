#include "ps/net/slow_link.h"

#include <fmt/format.h>

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cmath>

#include "models/base/errors.h"
#include "models/base/flag_values.h"

namespace syncopate {
namespace {

constexpr double kLongestDelay = 60.0;  // of a slow link, in seconds
constexpr double kLowestRate = 1000.0;  // of a slow link, in bytes per second
constexpr double kHighestRate = 1000.0e9;
constexpr double kChunkSeconds = 1e-3;
constexpr double kSmallestChunk = 2048;
constexpr double kLargestChunk = 65536;
// How late a busy machine may wake a thread.
constexpr double kSlackSeconds = 10e-3;
constexpr double kLeastSlack = 16384;
constexpr double kHeldWithoutRate = 32 << 20;
constexpr double kMostHeld = 256 << 20;
// The memory in bytes that a chunk counts for besides its content, so that the memory of many small
// chunks is bounded too.
constexpr std::size_t kBytesPerChunk = 128;

bool must_retry() { return errno == EAGAIN || errno == EINTR; }

}  // namespace

double parse_link_delay(const std::string& text) {
  const double seconds = parse_seconds(text, "--link-delay");
  if (seconds <= kLongestDelay) return seconds;
  throw UsageError(fmt::format("--link-delay {}: expected at most 60s", text));
}

double parse_link_rate(const std::string& text) {
  const double rate = parse_rate(text, "--link-rate");
  if (rate >= kLowestRate && rate <= kHighestRate) return rate;
  throw UsageError(fmt::format("--link-rate {}: expected 1kb to 1000gb (bytes per second)", text));
}

SlowLink::SlowLink(const Link& link)
    : delay_(std::llround(1e9 * link.delay_seconds)),
      chunk_bytes_(static_cast<std::size_t>(kLargestChunk)),
      most_held_bytes_(static_cast<std::size_t>(kHeldWithoutRate)) {
  const double rate = link.bytes_per_second;
  if (rate <= 0.0) return;
  nanoseconds_per_byte_ = 1e9 / rate;
  chunk_bytes_ =
      static_cast<std::size_t>(std::clamp(kChunkSeconds * rate, kSmallestChunk, kLargestChunk));
  const double slack = std::max(kSlackSeconds * rate, kLeastSlack);
  most_held_bytes_ =
      static_cast<std::size_t>(std::min(link.delay_seconds * rate + slack, kMostHeld));
}

SlowLink::Time SlowLink::send(Time now, std::size_t bytes) {
  const double nanoseconds = nanoseconds_per_byte_ * static_cast<double>(bytes);
  free_ = std::max(free_, now) + std::chrono::nanoseconds(std::llround(nanoseconds));
  return free_ + delay_;
}

std::optional<SlowStream::Time> SlowStream::due() const noexcept {
  if (chunks_.empty() || is_blocked_) return std::nullopt;
  return chunks_.front().due;
}

void SlowStream::read_from(int socket, std::span<char> buffer, Time now) {
  const std::size_t most = std::min(buffer.size(), link_->chunk_bytes());
  const ssize_t count = recv(socket, buffer.data(), most, MSG_DONTWAIT);
  if (count < 0 && must_retry()) return;
  if (count <= 0) return finish(count == 0 ? End::kClosed : End::kReset, now);
  const auto bytes = static_cast<std::size_t>(count);
  held_bytes_ += bytes + kBytesPerChunk;
  chunks_.push_back(
      {.bytes = {buffer.data(), buffer.data() + bytes}, .due = link_->send(now, bytes)});
}

bool SlowStream::write_to(int socket, Time now) {
  is_blocked_ = false;
  while (!chunks_.empty() && chunks_.front().due <= now) {
    Chunk& chunk = chunks_.front();
    if (chunk.end != End::kOpen) {
      delivered_ = chunk.end;
      if (chunk.end == End::kClosed) shutdown(socket, SHUT_WR);
      chunks_.pop_front();
      continue;
    }
    const ssize_t count =
        send(socket, chunk.bytes.data() + chunk.written_bytes,
             chunk.bytes.size() - chunk.written_bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count < 0 && must_retry()) {
      is_blocked_ = true;
      return true;
    }
    if (count < 0) {
      end_ = End::kReset;
      is_lost_ = true;
      chunks_.clear();
      held_bytes_ = 0;
      return false;
    }
    chunk.written_bytes += static_cast<std::size_t>(count);
    if (chunk.written_bytes < chunk.bytes.size()) continue;
    held_bytes_ -= chunk.bytes.size() + kBytesPerChunk;
    chunks_.pop_front();
  }
  return true;
}

void SlowStream::reset(Time now) { finish(End::kReset, now); }

void SlowStream::finish(End end, Time now) {
  if (end_ == End::kReset) return;
  end_ = end;
  chunks_.push_back({.bytes = {}, .due = link_->send(now, 0), .end = end});
}

}  // namespace syncopate
