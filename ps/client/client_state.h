// What a client is made of: the board at which callers wait, what they ask of the I/O thread, and
// what that thread owns. Only client.cc and the files of this folder see it.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "ps/client/client.h"
#include "ps/client/client_board.h"
#include "ps/client/control_link.h"
#include "ps/client/shard_link.h"
#include "ps/net/wake_event.h"

namespace syncopate::ps {

wire::MessageT lease_request();

// Asked by callers, done by the I/O thread.
struct Client::State {
  explicit State(const ClientOptions& given) : options(given), control(context, board, options) {
    const wire::DeclarationT& declaration = options.declaration;
    board.buckets.resize(declaration.buckets.size());
    for (std::size_t b = 0; b < declaration.buckets.size(); ++b) {
      const wire::BucketPlace& place = declaration.buckets[b];
      encoders.emplace_back(options.compression, place.end() - place.begin());
      if (place.owner() == 0) last_bucket_of_shard_0 = static_cast<int>(b);
    }
    for (int shard = 0; shard < options.servers; ++shard) {
      links.push_back(std::make_unique<ShardLink>(context, board, options, shard));
    }
  }

  struct Ask {
    int shard = 0;
    ShardRequest request;
    int roll_backs = 0;  // that whoever asks knows of
  };

  void tell(wire::MessageT message) {
    {
      const std::lock_guard lock(mutex);
      to_tell.push_back(std::move(message));
    }
    wake.notify();
  }
  void ask(std::vector<Ask> asks) {
    {
      const std::lock_guard lock(mutex);
      for (Ask& one : asks) to_ask.push_back(std::move(one));
    }
    wake.notify();
  }

  const wire::BucketPlace& place(int bucket) const {
    return options.declaration.buckets[static_cast<std::size_t>(bucket)];
  }
  int num_buckets() const { return static_cast<int>(options.declaration.buckets.size()); }
  template <typename T>
  std::span<T> part(std::span<T> block, int bucket) const {
    const wire::BucketPlace& at = place(bucket);
    return block.subspan(static_cast<std::size_t>(at.begin()),
                         static_cast<std::size_t>(at.end() - at.begin()));
  }

  // With the board's mutex held by `lock`: sends the requests and returns when all are answered, or
  // the copy that they want is no more.
  void ask_and_wait(std::unique_lock<std::mutex>& lock, std::vector<Ask> asks,
                    std::optional<std::uint64_t> cut = std::nullopt);
  ShardRequest pull_of(int bucket) const;

  void serve(const std::stop_token& stop);
  void hear(const ControlLink::News& news);
  void rewind(std::uint64_t cut);
  void go_on_from(const RunPosition& start);
  void appoint(const wire::AppointmentT& appointment);
  // Sends it, and remembers what must be said again should the connection break.
  void tell_shard_0(wire::MessageT message);
  void say_ready();
  void tell_again();
  bool has_met_all() const {
    return std::ranges::all_of(links, [](const auto& link) { return link->is_met(); });
  }
  void take_requests();
  bool is_void(const Ask& ask);
  void wait_for_events();

  const ClientOptions options;
  ClientBoard board;
  // The training thread's. Above the context: what is pushed borrows its bytes from them, and for a
  // moment ZeroMQ goes on sending when the sockets are closed.
  std::vector<GradientEncoder> encoders;
  StepInfo info;
  std::vector<float> state;  // that travels
  int last_bucket_of_shard_0 = 0;

  wire::Context context;
  WakeEvent wake;
  std::mutex mutex;  // guards to_tell, to_ask, open_exchange
  std::vector<wire::MessageT> to_tell;
  std::vector<Ask> to_ask;
  std::optional<wire::ExchangeT> open_exchange;  // has no answer yet
  std::atomic<std::int64_t> step{0};
  std::atomic<std::uint64_t> sequence{0};
  // The I/O thread's.
  ControlLink control;
  std::vector<std::unique_ptr<ShardLink>> links;
  bool must_say_ready = false;  // once all shards are met again
  bool awaits_start = false;
  std::uint64_t ready_after = 0;  // our last push when the servers went back
  // Said, and of no effect yet as far as we know.
  std::optional<wire::InitialisedT> first_values;
  std::optional<wire::StopRequestT> stop_request;
  bool is_leaving = false;

  std::jthread thread;  // last: it uses all of the above
};

}  // namespace syncopate::ps
