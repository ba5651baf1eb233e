// The peer ps-lite of `syncopate-bench ps`: one worker, one server and ps-lite's scheduler, each in
// a process of its own. A chunk is a key with a value of that many floats; each is pushed and
// pulled in one message, and all are under way at once. The server computes nothing. It can be
// started by hand:
//
//   printf 'run 67108864 20\nquit\n' | ps_lite_exchange
//
// Built where bench/peers/build_ps_lite.sh has put the library.
#include <malloc.h>
#include <stdlib.h>

#include <ps/ps.h>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "bench/harness/measure.h"
#include "bench/harness/rank_group.h"
#include "bench/ps/peers/exchange.h"
#include "models/base/errors.h"
#include "ps/net/connection.h"

namespace {

using syncopate::Deadline;
using syncopate::PeerError;
using syncopate::bench::ExchangeShape;
using syncopate::bench::RankGroup;

constexpr std::chrono::seconds kTimeout(120);
constexpr int kRanks = 3;
constexpr int kWorker = 0;
constexpr int kServer = 1;
constexpr std::array kRoles = {"worker", "server", "scheduler"};
// The command of a message with content that the server checks.
constexpr int kChecked = 1;
// The period of the test data is prime, so that a piece at a wrong offset is noticed.
constexpr std::size_t kPeriod = 251;

float element(std::size_t index, int rank) {
  return static_cast<float>(index % kPeriod + (rank == kWorker ? 0 : kPeriod));
}

// Keeps freed memory, as the other peers do: large frames would page-fault again each time.
void keep_freed_memory() {
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  mallopt(M_TOP_PAD, 64 << 20);
}

// ps-lite reads its settings from the environment. The scheduler listens at a port that rank 0 has
// found free.
void start_ps_lite(RankGroup& group) {
  std::string port;
  if (group.rank() == 0) {
    port = std::to_string(syncopate::Listener(syncopate::Endpoint{"127.0.0.1", 0}).port());
  }
  port = group.share(port);
  setenv("DMLC_PS_ROOT_URI", "127.0.0.1", 1);
  setenv("DMLC_PS_ROOT_PORT", port.c_str(), 1);
  setenv("DMLC_NODE_HOST", "127.0.0.1", 1);
  setenv("DMLC_NUM_WORKER", "1", 1);
  setenv("DMLC_NUM_SERVER", "1", 1);
  setenv("DMLC_ROLE", kRoles.at(static_cast<std::size_t>(group.rank())), 1);
  ps::Start(0);
}

class Server {
 public:
  Server() : server_(0) {
    server_.set_request_handle(
        [this](const ps::KVMeta& request, const ps::KVPairs<float>& data,
               ps::KVServer<float>* server) { answer(request, data, *server); });
  }

  // Called while no message is under way.
  void prepare(const ExchangeShape& shape) {
    chunk_ = shape.message_bytes / sizeof(float);
    values_.resize(shape.bytes / sizeof(float));
    for (std::size_t i = 0; i < values_.size(); ++i) values_[i] = element(i, kServer);
  }
  bool has_wrong_values() const { return has_wrong_values_; }

 private:
  void answer(const ps::KVMeta& request, const ps::KVPairs<float>& data,
              ps::KVServer<float>& server) {
    const std::size_t at = data.keys[0] * chunk_;
    for (std::size_t i = 0; request.cmd == kChecked && i < data.vals.size(); ++i) {
      if (data.vals[i] != element(at + i, kWorker)) has_wrong_values_ = true;
    }
    ps::KVPairs<float> answer;
    answer.keys = data.keys;
    answer.vals.reset(values_.data() + at, data.vals.size(), [](float*) {});
    server.Response(request, answer);
  }

  ps::KVServer<float> server_;
  std::size_t chunk_ = 1;
  std::vector<float> values_;
  std::atomic<bool> has_wrong_values_ = false;
};

class Worker {
 public:
  Worker() : worker_(0, 0) {}

  void prepare(const ExchangeShape& shape) {
    const std::size_t chunk = shape.message_bytes / sizeof(float);
    const std::size_t size = shape.bytes / sizeof(float);
    outgoing_.resize(size);
    for (std::size_t i = 0; i < size; ++i) outgoing_[i] = element(i, kWorker);
    pulled_.assign(size, 0.0F);
    chunks_.clear();
    for (std::size_t at = 0; at < size; at += chunk) {
      const std::size_t count = std::min(chunk, size - at);
      Chunk& one = chunks_.emplace_back();
      one.key = {static_cast<ps::Key>(at / chunk)};
      one.push.reset(outgoing_.data() + at, count, [](float*) {});
      one.pull.reset(pulled_.data() + at, count, [](float*) {});
    }
  }

  void exchange(int command = 0) {
    std::vector<int> requests;
    for (Chunk& one : chunks_) {
      requests.push_back(worker_.ZPushPull(one.key, one.push, &one.pull, nullptr, command));
    }
    for (const int request : requests) worker_.Wait(request);
  }

  void require_values() {
    std::ranges::fill(pulled_, 0.0F);
    exchange(kChecked);
    for (std::size_t i = 0; i < pulled_.size(); ++i) {
      if (pulled_[i] != element(i, kServer)) throw PeerError("ps-lite: a wrong value came back");
    }
  }

 private:
  struct Chunk {
    ps::SArray<ps::Key> key;
    ps::SArray<float> push;
    ps::SArray<float> pull;
  };
  ps::KVWorker<float> worker_;
  std::vector<float> outgoing_;
  std::vector<float> pulled_;
  std::vector<Chunk> chunks_;
};

void serve(int rank) {
  const auto group = syncopate::bench::make_rank_group(rank, kRanks, {});
  start_ps_lite(*group);
  auto worker = rank == kWorker ? std::make_unique<Worker>() : nullptr;
  auto server = rank == kServer ? std::make_unique<Server>() : nullptr;
  serve_commands(*group, "ps-lite, PushPull of 1 MB values, reno", [&](const std::string& command) {
    const auto asked = syncopate::bench::parse_exchange_command(command);
    if (worker) worker->prepare(asked.shape);
    if (server) server->prepare(asked.shape);
    group->barrier(Deadline::after(kTimeout));
    std::vector<double> seconds;
    if (worker) {
      worker->exchange();  // one uncounted exchange wakes threads, touches memory
      for (int i = 0; i < asked.exchanges; ++i) {
        const auto start = syncopate::bench::SteadyClock::now();
        worker->exchange();
        seconds.push_back(syncopate::bench::seconds_since(start));
      }
      worker->require_values();
    }
    // The other ranks sleep here: a spinning barrier would take a core from the measured ones.
    group->share("done");
    if (server && server->has_wrong_values()) throw PeerError("ps-lite: a wrong value was pushed");
    return nlohmann::json{{"seconds", seconds}};
  });
  ps::Finalize(0, true);
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  try {
    keep_freed_memory();
    serve(arguments.size() == 2 && arguments[0] == "--rank" ? std::stoi(arguments[1]) : 0);
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "ps_lite_exchange: " << error.what() << std::endl;
    _exit(1);  // the library's threads do not end by themselves
  }
}
