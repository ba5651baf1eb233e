#include "worker/run/peer_watch.h"

#include <pthread.h>

#include <utility>

namespace syncopate {

PeerWatch::PeerWatch(Membership& membership, std::chrono::milliseconds grace, Act end_process)
    : membership_(membership) {
  thread_ = std::jthread([this, grace, end = std::move(end_process)](const std::stop_token& stop) {
    pthread_setname_np(pthread_self(), "peer-watch");
    std::unique_lock lock(mutex_);
    if (!changed_.wait(lock, stop, [this] { return !reason_.empty(); })) return;
    changed_.wait_for(lock, stop, grace, [] { return false; });
    if (stop.stop_requested()) return;
    const std::string reason = reason_;
    lock.unlock();
    end(reason);
  });
  membership_.on_failure([this](const std::string& reason) { note(reason); });
}

PeerWatch::~PeerWatch() { membership_.on_failure({}); }

void PeerWatch::note(const std::string& reason) {
  const std::lock_guard lock(mutex_);
  reason_ = reason;
  changed_.notify_all();
}

PeerWatch::Waker::Waker(PeerWatch& watch, Act wake) : watch_(watch) {
  watch_.membership_.on_failure([&watch, act = std::move(wake)](const std::string& reason) {
    act(reason);
    watch.note(reason);
  });
}

PeerWatch::Waker::~Waker() {
  watch_.membership_.on_failure(
      [&watch = watch_](const std::string& reason) { watch.note(reason); });
}

}  // namespace syncopate
