#include "bench/ps/peers/exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "bench/harness/measure.h"
#include "bench/harness/report.h"
#include "models/base/errors.h"
#include "models/tensor/tensor.h"

namespace syncopate::bench {
namespace {

using nlohmann::json;

constexpr std::chrono::seconds kExchangeTimeout(120);
// The period of the test data is prime, so the check finds a piece at a wrong offset. Values of the
// two directions differ too.
constexpr std::size_t kPeriod = 251;

float element(std::size_t index, int rank) {
  return static_cast<float>(index % kPeriod + (rank == 0 ? 0 : kPeriod));
}

void take_nothing(std::size_t /*offset_bytes*/, std::span<const std::byte> /*piece*/) {}

class Measurement {
 public:
  Measurement(RankGroup& group, ExchangeEnd& end) : group_(group), end_(end) {}

  // Returns the seconds of each exchange. Only the worker's are meaningful.
  std::vector<double> run(const ExchangeShape& shape, int exchanges) {
    prepare(shape);
    const std::span<const std::byte> outgoing = outgoing_.bytes();
    group_.barrier(Deadline::after(kExchangeTimeout));
    // One uncounted exchange wakes sleeping threads and touches memory.
    end_.exchange(outgoing, take_nothing);
    std::vector<double> seconds;
    seconds.reserve(static_cast<std::size_t>(exchanges));
    for (int i = 0; i < exchanges; ++i) {
      const auto start = SteadyClock::now();
      end_.exchange(outgoing, take_nothing);
      seconds.push_back(seconds_since(start));
    }
    check_exchange(outgoing);
    group_.barrier(Deadline::after(kExchangeTimeout));  // waits until the server has also checked
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
    throw PeerError(
        fmt::format("expected {} bytes from the other end, {} came", outgoing.size(), taken));
  }

  void check_piece(std::size_t offset, std::span<const std::byte> piece) const {
    for (std::size_t at = 0; at + sizeof(float) <= piece.size(); at += sizeof(float)) {
      float found = 0.0F;
      std::memcpy(&found, piece.data() + at, sizeof found);  // frames may be unaligned
      const std::size_t index = (offset + at) / sizeof(float);
      const float expected = element(index, 1 - group_.rank());
      if (found == expected) continue;
      throw PeerError(
          fmt::format("a wrong value: element {} is {:f}, expected {:f}", index, found, expected));
    }
  }

  RankGroup& group_;
  ExchangeEnd& end_;
  ExchangeShape prepared_;
  Tensor outgoing_;
};

double units_of(const ExchangeShape& shape) {
  const std::size_t unit = shape.variable_bytes > 0 ? shape.variable_bytes : shape.message_bytes;
  return std::max(1.0, static_cast<double>(shape.bytes) / static_cast<double>(unit));
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
  return fmt::format("run {} {} {} {}", shape.bytes, exchanges, shape.message_bytes,
                     shape.variable_bytes);
}

void serve_exchanges(RankGroup& group, ExchangeEnd& end, std::string_view description) {
  check(group.size() == 2, "an exchange is between two");
  Measurement measurement(group, end);
  serve_commands(group, description, [&](const std::string& command) -> json {
    const ExchangeCommand asked = parse_exchange_command(command);
    return {{"seconds", measurement.run(asked.shape, asked.exchanges)}};
  });
}

Rounds take_exchange_rounds(std::vector<Contestant>& contestants, const ExchangeShape& shape,
                            int rounds, double seconds_per_turn) {
  // Each command makes one uncounted exchange before the measured ones and a checked one after.
  const ContestTask task{
      .command = [shape](int exchanges) { return exchange_command(shape, exchanges); },
      .uncounted_calls = 2,
      .most_calls = 20'000};
  return take_contest_rounds(contestants, task, rounds, seconds_per_turn);
}

std::string exchange_table(const std::string& size, const ExchangeShape& shape,
                           const std::vector<Contestant>& contestants, const Rounds& rounds) {
  std::vector<std::vector<std::string>> table = {
      {size, "median us [min-max]", "p50 us", "p99 us", "GB/s each way",
       shape.variable_bytes > 0 ? "variables/s" : "messages/s", "exchanges",
       "best peer / ours [min-max]"}};
  for (std::size_t i = 0; i < contestants.size(); ++i) {
    const Contestant& one = contestants[i];
    const std::vector<double> seconds = rounds.counted(i);
    const double per_second = one.side().workers / median(seconds);
    table.push_back({one.side().name, spread_text(spread_of(seconds), 1e6),
                     number_text(1e6 * one.percentile_seconds(0.5, rounds)),
                     number_text(1e6 * one.percentile_seconds(0.99, rounds)),
                     number_text(1e-9 * static_cast<double>(shape.bytes) * per_second),
                     number_text(units_of(shape) * per_second),
                     std::to_string(one.calls_per_turn()), ratio_cell(contestants, i, rounds)});
  }
  return format_table(table) + describe_conditions(rounds);
}

json exchange_json(const ExchangeShape& shape, const std::vector<Contestant>& contestants,
                   const Rounds& rounds) {
  json document = {{"bytes", shape.bytes},
                   {"message_bytes", shape.message_bytes},
                   {"variable_bytes", shape.variable_bytes},
                   {"sides", json::array()}};
  document.update(conditions_json(rounds));
  for (std::size_t i = 0; i < contestants.size(); ++i) {
    const Contestant& one = contestants[i];
    json side = contestant_json(contestants, i, rounds);
    const double seconds = side["seconds"].get<double>();
    const int workers = one.side().workers;
    side.update(
        {{"seconds_p50", one.percentile_seconds(0.5, rounds)},
         {"exchanges_per_round", one.calls_per_turn()},
         {"workers", workers},
         {"units_per_second", units_of(shape) * workers / seconds},
         {"bytes_per_second_each_way", static_cast<double>(shape.bytes) * workers / seconds}});
    document["sides"].push_back(side);
  }
  return document;
}

}  // namespace syncopate::bench
