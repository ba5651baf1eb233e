#include "ps/shard/placement.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string>

#include "models/base/errors.h"
#include "models/base/parse_number.h"
#include "ps/wire/message.h"

namespace syncopate::ps {
namespace {

constexpr std::int64_t kElementBytes = sizeof(float);
// The least size in bytes that messages are planned with: smaller ones would hardly cost less.
constexpr std::int64_t kSmallestMessage = std::int64_t{64} << 10;
// The number of messages per shard: several, so that the first leave while backward runs, and the
// load can be balanced.
constexpr std::int64_t kMessagesPerShard = 4;
// Variables' parts are joined into ranges of about equal size; small parts allow more equal ranges.
constexpr std::int64_t kPartsPerRange = 8;
// The imbalance of shards that is good enough, and how often ranges are halved to reach it.
constexpr double kBalanced = 1.05;
constexpr int kHalvings = 3;

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

std::int64_t size_bytes(Bucket range) { return (range.end - range.begin) * kElementBytes; }

std::int64_t range_bytes(const ArenaLayout& layout, const PlacementOptions& options,
                         std::int64_t messages) {
  const std::int64_t share = layout.total() * kElementBytes / messages;
  return std::min(options.message_bytes, std::max(share, kSmallestMessage));
}

std::int64_t parts_of(const PlacementOptions& options, std::int64_t rows, std::int64_t row_bytes,
                      std::int64_t target) {
  if (options.partition.kind != PartitionRule::Kind::kAuto) {
    // For MinSizePartitioner TensorFlow's documentation advises as many parts as there are servers.
    const bool is_min_size = options.partition.kind == PartitionRule::Kind::kMinSize;
    return count_parts(options.partition, rows, row_bytes, is_min_size ? options.servers : 0);
  }
  const bool must_balance = options.servers > 1;
  // A variable of less than two messages is sent whole: splitting it would gain nothing.
  const std::int64_t limit = must_balance ? target : 2 * options.message_bytes;
  if (rows * row_bytes <= limit) return 1;
  const std::int64_t most = must_balance ? target / kPartsPerRange : options.message_bytes;
  return count_parts({PartitionRule::Kind::kAuto, std::max<std::int64_t>(1, most)}, rows, row_bytes,
                     0);
}

// Returns all variables' parts in backward order. Padding belongs to a variable's last part.
std::vector<Bucket> split_into_parts(const ArenaLayout& layout, const PlacementOptions& options,
                                     std::int64_t target) {
  std::vector<Bucket> parts;
  std::int64_t end = layout.total();
  for (std::size_t i = layout.entries().size(); i-- > 0;) {
    const Shape& shape = layout.entries()[i].shape;
    const std::int64_t rows = shape.empty() ? 1 : shape.front();
    if (layout.size(i) == 0) continue;
    const std::int64_t row_elements = layout.size(i) / rows;
    const std::int64_t count = parts_of(options, rows, row_elements * kElementBytes, target);
    for (std::int64_t part = count; part-- > 0;) {
      const std::int64_t begin = layout.offset(i) + first_row(rows, count, part) * row_elements;
      parts.push_back({begin, end});
      end = begin;
    }
  }
  return parts;
}

// Joins parts of variables into ranges of about `target` bytes, equally many per server. Each range
// ends at the part border that is nearest to a multiple of the range size. A part that is larger
// than a range stays alone.
std::vector<Bucket> join_evenly(const std::vector<Bucket>& parts, const PlacementOptions& options,
                                std::int64_t target) {
  const std::int64_t total = size_bytes({0, parts.empty() ? 0 : parts.front().end});
  const std::int64_t per_server = ceil_div(total, options.servers * target);
  const std::int64_t even =
      std::max<std::int64_t>(1, ceil_div(total, options.servers * per_server));
  std::vector<Bucket> ranges;
  std::int64_t wanted_end = 0;  // where the range should end, in bytes from the arena's end
  for (const Bucket part : parts) {
    const std::int64_t before = total - size_bytes({0, part.end});
    const std::int64_t after = before + size_bytes(part);
    const bool nearer = after - wanted_end <= wanted_end - before;
    if (!ranges.empty() && nearer &&
        size_bytes({part.begin, ranges.back().end}) <= options.message_bytes) {
      ranges.back().begin = part.begin;
      continue;
    }
    ranges.push_back(part);
    // The next range ends at least half a range from here, so that it is not too short after a
    // large part.
    wanted_end = ceil_div(before + even / 2, even) * even;
  }
  return ranges;
}

// Assigns the largest range first, each range to the shard with the fewest bytes. Source: longest
// processing time first, Graham 1969, "Bounds on multiprocessing timing anomalies", section 5.
std::vector<int> assign(const std::vector<Bucket>& ranges, int servers) {
  std::vector<std::size_t> order(ranges.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::ranges::greater(),
                           [&](std::size_t s) { return size_bytes(ranges[s]); });
  std::vector<std::int64_t> load(static_cast<std::size_t>(servers));
  std::vector<int> owner(ranges.size());
  for (const std::size_t s : order) {
    const auto least = std::ranges::min_element(load);  // the first of equals
    *least += size_bytes(ranges[s]);
    owner[s] = static_cast<int>(least - load.begin());
  }
  return owner;
}

Placement join_on_same_shard(const Placement& placement, std::int64_t most_bytes) {
  Placement joined;
  for (std::size_t b = 0; b < placement.buckets.size(); ++b) {
    const Bucket bucket = placement.buckets[b];
    if (!joined.buckets.empty() && joined.owner.back() == placement.owner[b] &&
        size_bytes({bucket.begin, joined.buckets.back().end}) <= most_bytes) {
      joined.buckets.back().begin = bucket.begin;
    } else {
      joined.buckets.push_back(bucket);
      joined.owner.push_back(placement.owner[b]);
    }
  }
  return joined;
}

[[noreturn]] void throw_too_few_parts(const PlacementOptions& options, std::size_t parts) {
  throw UsageError(fmt::format(
      "{0} parameter servers, but the network's variables make {1} {2}; start at most as "
      "many servers, or split the variables into more parts with --partition fixed:{0}",
      options.servers, parts, parts == 1 ? "part" : "parts"));
}

// Throws UsageError for a part that is longer than a message frame may be: sending it would close
// the connection each time.
void check_frames(const ArenaLayout& layout, const Placement& placement) {
  constexpr auto kMost = static_cast<std::int64_t>(wire::kLongestFrame);
  for (const Bucket bucket : placement.buckets) {
    if (size_bytes(bucket) <= kMost) continue;
    std::size_t variable = 0;
    while (layout.offset(variable) + layout.size(variable) <= bucket.begin) ++variable;
    throw UsageError(fmt::format(
        "a part of variable {} has {} bytes, expected at most {} in one message; split "
        "the variable into smaller parts with --partition auto or max-size:{}, unless a "
        "single row of it is larger",
        layout.entries()[variable].name, size_bytes(bucket), kMost, kMost / 16));
  }
}

}  // namespace

PartitionRule parse_partition(std::string_view text, std::string_view what) {
  using Kind = PartitionRule::Kind;
  if (text == name(Kind::kAuto)) return {};
  const std::size_t colon = text.find(':');
  const std::string_view word = text.substr(0, colon);
  const auto kind = value_named<Kind>(word);
  if (!kind || kind == Kind::kAuto) {
    throw UsageError(
        fmt::format("{} {}: unknown rule; expected auto, fixed:PARTS, min-size:BYTES or "
                    "max-size:BYTES",
                    what, text));
  }
  const std::string_view number = colon == std::string_view::npos ? "" : text.substr(colon + 1);
  const auto value = parse_number<std::int64_t>(number).value_or(0);
  if (value < 1) {
    throw UsageError(
        fmt::format("{} {}: \"{}\" is not a whole number from 1; expected one, such as {}:{}", what,
                    text, number, word, kind == Kind::kFixed ? "4" : "262144"));
  }
  return {*kind, value};
}

std::string to_text(const PartitionRule& rule) {
  const std::string_view word = name(rule.kind);
  if (rule.kind == PartitionRule::Kind::kAuto) return std::string(word);
  return fmt::format("{}:{}", word, rule.value);
}

std::int64_t count_parts(const PartitionRule& rule, std::int64_t rows, std::int64_t row_bytes,
                         std::int64_t most_parts) {
  check(rows >= 1 && row_bytes >= 1 && rule.value >= 1, "a variable and its parts are not empty");
  std::int64_t wanted = 1;
  switch (rule.kind) {
    case PartitionRule::Kind::kFixed:
      wanted = rule.value;
      break;
    case PartitionRule::Kind::kMinSize:
      // The number of parts is rounded up, as in TensorFlow: a part may be smaller than
      // `rule.value`.
      wanted = ceil_div(rows * row_bytes, rule.value);
      break;
    case PartitionRule::Kind::kAuto:
    case PartitionRule::Kind::kMaxSize:
      wanted = ceil_div(rows, std::max<std::int64_t>(1, rule.value / row_bytes));
      break;
  }
  const std::int64_t most = most_parts > 0 ? std::min(rows, most_parts) : rows;
  return std::clamp<std::int64_t>(wanted, 1, most);
}

std::int64_t first_row(std::int64_t rows, std::int64_t parts, std::int64_t part) {
  return part * (rows / parts) + std::min(part, rows % parts);
}

Placement place_variables(const ArenaLayout& layout, const PlacementOptions& options) {
  check(options.servers >= 1 && options.message_bytes >= 1,
        "there are servers, and messages are not empty");
  const auto servers = static_cast<std::size_t>(options.servers);
  std::int64_t target = range_bytes(layout, options, kMessagesPerShard * options.servers);
  Placement best;
  std::size_t most_parts = 0;
  for (int halvings = 0; halvings <= kHalvings + 1; ++halvings, target = (target + 1) / 2) {
    const std::vector<Bucket> parts = split_into_parts(layout, options, target);
    most_parts = parts.size();
    // The last attempt is made only if no other found a placement. It joins no parts: each part is
    // a range.
    if (halvings > kHalvings && !best.buckets.empty()) break;
    std::vector<Bucket> ranges =
        halvings <= kHalvings ? join_evenly(parts, options, target) : parts;
    if (ranges.size() < servers) continue;
    std::vector<int> owner = assign(ranges, options.servers);
    Placement found{std::move(ranges), std::move(owner)};
    if (best.buckets.empty() ||
        imbalance(found, options.servers) < imbalance(best, options.servers)) {
      best = std::move(found);
    }
    if (imbalance(best, options.servers) <= kBalanced) break;
  }
  if (best.buckets.empty()) throw_too_few_parts(options, most_parts);
  // Ranges are joined up to the message size of a single shard at most: the first part of a larger
  // message would wait too long for its last part.
  Placement joined = join_on_same_shard(best, range_bytes(layout, options, kMessagesPerShard));
  check_frames(layout, joined);
  return joined;
}

double imbalance(const Placement& placement, int servers) {
  std::vector<std::int64_t> load(static_cast<std::size_t>(servers));
  for (std::size_t b = 0; b < placement.buckets.size(); ++b) {
    load.at(static_cast<std::size_t>(placement.owner[b])) += size_bytes(placement.buckets[b]);
  }
  const std::int64_t total = std::accumulate(load.begin(), load.end(), std::int64_t{0});
  if (total == 0) return 1.0;
  return static_cast<double>(std::ranges::max(load)) * servers / static_cast<double>(total);
}

}  // namespace syncopate::ps
