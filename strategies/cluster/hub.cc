#include "strategies/cluster/hub.h"

#include <algorithm>
#include <utility>

#include "strategies/cluster/hello.h"

namespace syncopate {
namespace {

template <typename Flags, typename IsMissing>
std::vector<int> places(const Flags& flags, IsMissing is_missing) {
  std::vector<int> missing;
  for (std::size_t i = 0; i < flags.size(); ++i) {
    if (is_missing(flags[i])) missing.push_back(static_cast<int>(i));
  }
  return missing;
}

}  // namespace

std::vector<Frame> Hub::take(int from, Frame frame) {
  const std::lock_guard lock(mutex_);
  const auto index = static_cast<std::size_t>(from);
  std::vector<Frame> answer;
  if (frame.type == kLeaving) {
    leaving_[index] = true;
    if (std::ranges::all_of(leaving_, [](bool leaving) { return leaving; })) {
      answer.push_back({kLeft, ""});
    }
  } else if (frame.type == kText) {
    texts_[index].push_back(std::move(frame.payload));
    if (std::ranges::any_of(texts_, [](const auto& texts) { return texts.empty(); })) return {};
    for (std::deque<std::string>& texts : texts_) {
      answer.push_back({kText, std::move(texts.front())});
      texts.pop_front();
    }
  }
  return answer;
}

std::vector<int> Hub::without_text() const {
  const std::lock_guard lock(mutex_);
  return places(texts_, [](const auto& texts) { return texts.empty(); });
}

std::vector<int> Hub::not_leaving() const {
  const std::lock_guard lock(mutex_);
  return places(leaving_, [](bool leaving) { return !leaving; });
}

}  // namespace syncopate
