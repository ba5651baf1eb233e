#include "strategies/cluster/hub.h"

#include <algorithm>
#include <utility>

#include "strategies/cluster/hello.h"

namespace syncopate {
namespace {

template <typename Flags, typename IsMissing>
std::string list_ranks(const Flags& flags, IsMissing is_missing) {
  std::string text;
  for (std::size_t i = 0; i < flags.size(); ++i) {
    if (is_missing(flags[i])) text += (text.empty() ? "rank " : ", rank ") + std::to_string(i);
  }
  return text;
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

std::string Hub::without_text() const {
  const std::lock_guard lock(mutex_);
  return list_ranks(texts_, [](const auto& texts) { return texts.empty(); });
}

std::string Hub::not_leaving() const {
  const std::lock_guard lock(mutex_);
  return list_ranks(leaving_, [](bool leaving) { return !leaving; });
}

}  // namespace syncopate
