#include "ps/net/readable_set.h"

#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "models/base/errors.h"

namespace syncopate {

ReadableSet::ReadableSet() : epoll_(epoll_create1(EPOLL_CLOEXEC)) {
  if (!epoll_) throw FileError(describe_errno("create", "an epoll instance", errno));
}

ReadableSet::Registration::Registration(ReadableSet& set, std::vector<int> descriptors,
                                        std::uint32_t number)
    : set_(set), descriptors_(std::move(descriptors)) {
  for (const int descriptor : descriptors_) {
    epoll_event event{.events = EPOLLIN, .data = {.u32 = number}};
    if (epoll_ctl(set_.epoll_.get(), EPOLL_CTL_ADD, descriptor, &event) != 0) {
      throw FileError(describe_errno("wait for", "a descriptor", errno));
    }
  }
}

ReadableSet::Registration::~Registration() {
  for (const int descriptor : descriptors_) {
    epoll_ctl(set_.epoll_.get(), EPOLL_CTL_DEL, descriptor, nullptr);
  }
}

std::vector<std::uint32_t> ReadableSet::wait(std::chrono::milliseconds timeout) {
  std::array<epoll_event, 256> events;  // the kernel reports further ones in the next wait, in turn
  const int count = epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()),
                               static_cast<int>(timeout.count()));
  std::vector<std::uint32_t> numbers;
  for (int i = 0; i < count; ++i) numbers.push_back(events[static_cast<std::size_t>(i)].data.u32);
  std::ranges::sort(numbers);
  const auto repeated = std::ranges::unique(numbers);
  numbers.erase(repeated.begin(), repeated.end());
  return numbers;
}

}  // namespace syncopate
