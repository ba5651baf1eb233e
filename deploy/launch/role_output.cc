#include "deploy/launch/role_output.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace syncopate {
namespace {

// The largest number of portions read after the role has ended. It exceeds what a pipe can hold (1
// MiB), and it bounds the wait for a descendant that goes on writing.
constexpr int kMostLastPortions = 64;

}  // namespace

bool RoleOutput::forward() {
  std::array<char, 64 << 10> bytes;  // NOLINT(*-member-init): filled by read
  const ssize_t count = pipe_ ? read(pipe_.get(), bytes.data(), bytes.size()) : 0;
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  if (count <= 0) {
    pipe_.reset();
    return false;
  }
  const std::string lines = lines_.add({bytes.data(), static_cast<std::size_t>(count)});
  if (!lines.empty()) write_(lines);
  return true;
}

void RoleOutput::finish() {
  for (int portion = 0; portion < kMostLastPortions && forward(); ++portion) {
  }
  pipe_.reset();
  const std::string rest = lines_.finish();
  if (!rest.empty()) write_(rest);
}

std::string OutputPrefixer::add(std::string_view bytes) {
  std::string lines;
  while (!bytes.empty()) {
    const std::string_view room = bytes.substr(0, kLongestLine - unfinished_.size());
    const std::size_t newline = room.find('\n');
    const bool ends = newline != std::string_view::npos;
    const std::string_view part = room.substr(0, newline);
    unfinished_ += part;
    bytes.remove_prefix(part.size() + (ends ? 1 : 0));
    if (!ends && unfinished_.size() < kLongestLine) break;
    lines += prefix_ + unfinished_ + '\n';
    unfinished_.clear();
  }
  return lines;
}

std::string OutputPrefixer::finish() {
  if (unfinished_.empty()) return "";
  std::string line = prefix_ + unfinished_ + '\n';
  unfinished_.clear();
  return line;
}

}  // namespace syncopate
