#include "bench/ps/peers/exchange.h"

#include <unistd.h>

#include <chrono>
#include <cstring>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "models/base/errors.h"
#include "models/tensor/tensor.h"

namespace syncopate::bench {
namespace {

using Clock = std::chrono::steady_clock;
using nlohmann::json;

// The alarm ends a rank that hangs. Its time is shorter than the peer's answer timeout.
constexpr unsigned kLongestCommandSeconds = 240;
constexpr std::chrono::seconds kBarrierPatience(120);
// The period is prime, so the check finds a piece at a wrong offset. Values of the two directions
// differ too.
constexpr std::size_t kPeriod = 251;

float element(std::size_t index, int rank) {
  return static_cast<float>(index % kPeriod + (rank == 0 ? 0 : kPeriod));
}

void take_nothing(std::size_t /*offset_bytes*/, std::span<const std::byte> /*piece*/) {}

class Measurement {
 public:
  Measurement(RankGroup& group, ExchangeEnd& end) : group_(group), end_(end) {}

  // Returns the seconds of each exchange. Only those of the worker are meaningful.
  std::vector<double> run(const ExchangeShape& shape, int exchanges) {
    prepare(shape);
    const std::span<const std::byte> outgoing = outgoing_.bytes();
    group_.barrier(Deadline::after(kBarrierPatience));
    // One exchange wakes sleeping threads and touches memory.
    end_.exchange(outgoing, take_nothing);
    std::vector<double> seconds;
    seconds.reserve(static_cast<std::size_t>(exchanges));
    for (int i = 0; i < exchanges; ++i) {
      const Clock::time_point start = Clock::now();
      end_.exchange(outgoing, take_nothing);
      seconds.push_back(std::chrono::duration<double>(Clock::now() - start).count());
    }
    check_exchange(outgoing);
    group_.barrier(Deadline::after(kBarrierPatience));  // The server has completed its check too.
    return seconds;
  }

 private:
  void prepare(const ExchangeShape& shape) {
    if (prepared_ == shape) return;
    const std::size_t elements = shape.bytes / sizeof(float);
    outgoing_ = make_host_tensor({static_cast<std::int64_t>(elements)}, DType::kF32);
    for (std::size_t i = 0; i < elements; ++i) outgoing_.f32()[i] = element(i, group_.rank());
    end_.prepare(shape);
    prepared_ = shape;
  }

  void check_exchange(std::span<const std::byte> outgoing) {
    std::size_t taken = 0;
    end_.exchange(outgoing, [&](std::size_t offset, std::span<const std::byte> piece) {
      if (offset != taken) throw PeerError("a piece arrived out of order");
      check_piece(offset, piece);
      taken += piece.size();
    });
    if (taken == outgoing.size()) return;
    throw PeerError("expected " + std::to_string(outgoing.size()) + " bytes from the other end, " +
                    std::to_string(taken) + " came");
  }

  void check_piece(std::size_t offset, std::span<const std::byte> piece) const {
    for (std::size_t at = 0; at + sizeof(float) <= piece.size(); at += sizeof(float)) {
      float found = 0.0F;
      std::memcpy(&found, piece.data() + at, sizeof found);  // Frames may be unaligned.
      const std::size_t index = (offset + at) / sizeof(float);
      const float expected = element(index, 1 - group_.rank());
      if (found == expected) continue;
      throw PeerError("a wrong value: element " + std::to_string(index) + " is " +
                      std::to_string(found) + ", expected " + std::to_string(expected));
    }
  }

  RankGroup& group_;
  ExchangeEnd& end_;
  ExchangeShape prepared_;
  Tensor outgoing_;
};

void answer(const RankGroup& group, const json& line) {
  if (group.rank() == 0) std::cout << line.dump() << std::endl;
}

void serve(RankGroup& group, ExchangeEnd& end) {
  Measurement measurement(group, end);
  while (const std::optional<std::string> command = group.next_command()) {
    if (*command == "quit") return;
    const ExchangeCommand asked = parse_exchange_command(*command);
    ::alarm(kLongestCommandSeconds);  // A hanging library must not outlive the benchmark.
    const std::vector<double> seconds = measurement.run(asked.shape, asked.exchanges);
    ::alarm(0);
    answer(group, {{"event", "steps"}, {"seconds", seconds}});
  }
}

}  // namespace

ExchangeCommand parse_exchange_command(const std::string& text) {
  const auto is_whole = [](std::int64_t bytes) { return bytes >= 0 && bytes % 4 == 0; };
  ExchangeCommand asked;
  std::istringstream words(text);
  std::string verb;
  std::int64_t bytes = 0;
  auto message_bytes = static_cast<std::int64_t>(asked.shape.message_bytes);
  std::int64_t variable_bytes = 0;
  const bool is_run = words >> verb >> bytes >> asked.exchanges && verb == "run";
  if (words >> message_bytes) words >> variable_bytes;
  if (!is_run || bytes == 0 || message_bytes == 0 || asked.exchanges < 1 || !is_whole(bytes) ||
      !is_whole(message_bytes) || !is_whole(variable_bytes)) {
    throw UsageError(
        "expected 'run BYTES EXCHANGES [MESSAGE_BYTES [VARIABLE_BYTES]]' (whole f32) or 'quit', "
        "got '" +
        text + "'");
  }
  asked.shape = {.bytes = static_cast<std::size_t>(bytes),
                 .message_bytes = static_cast<std::size_t>(message_bytes),
                 .variable_bytes = static_cast<std::size_t>(variable_bytes)};
  return asked;
}

std::string exchange_command(const ExchangeShape& shape, int exchanges) {
  return "run " + std::to_string(shape.bytes) + " " + std::to_string(exchanges) + " " +
         std::to_string(shape.message_bytes) + " " + std::to_string(shape.variable_bytes);
}

void serve_exchanges(RankGroup& group, ExchangeEnd& end, std::string_view description) {
  check(group.size() == 2, "an exchange is between two");
  answer(group, {{"event", "ready"}, {"description", description}, {"pids", group.pids()}});
  try {
    serve(group, end);
  } catch (...) {
    group.fail();
    throw;
  }
}

}  // namespace syncopate::bench
