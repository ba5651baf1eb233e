#include "deploy/launch/output_prefixer.h"

#include <algorithm>

namespace syncopate {

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
