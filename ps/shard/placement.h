// Placement decides which part of the network lives on which shard. It balances the bytes of the
// shards and makes few, large messages. Placement is a pure function of the layout and the options,
// so every worker and every server computes the same placement.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/enum_names.h"
#include "models/tensor/parameter_arena.h"

namespace syncopate::ps {

// How a variable is split into parts, along axis 0 only. All rules but kAuto are TensorFlow's
// partitioners. Source: tensorflow/python/distribute/sharded_variable.py.
struct PartitionRule {
  enum class Kind : std::uint8_t {
    kAuto,     // splits variables that are too large for one message or for balanced shards
    kFixed,    // splits each variable into `value` parts
    kMinSize,  // splits into parts of about `value` bytes or more, at most one part per server
    kMaxSize,  // splits into parts of at most `value` bytes
  };
  Kind kind = Kind::kAuto;
  std::int64_t value = 0;
};
constexpr auto named_values(PartitionRule::Kind /*type*/) {
  using Kind = PartitionRule::Kind;
  return std::array{Named{"auto", Kind::kAuto}, Named{"fixed", Kind::kFixed},
                    Named{"min-size", Kind::kMinSize}, Named{"max-size", Kind::kMaxSize}};
}

// Parses a partition rule: "auto", "fixed:4", "min-size:262144" or "max-size:4194304". Throws
// UsageError that names `what`, such as "--partition".
PartitionRule parse_partition(std::string_view text, std::string_view what);
// Returns the text that parse_partition() reads.
std::string to_text(const PartitionRule& rule);

// Returns into how many parts the rule splits a variable with `rows` rows (along axis 0) of
// `row_bytes` bytes each. The result is at least 1, at most `rows`, and at most `most_parts` unless
// `most_parts` is 0. kAuto is computed like kMaxSize. Source: TensorFlow's FixedShardsPartitioner,
// MinSizePartitioner, MaxSizePartitioner.
std::int64_t count_parts(const PartitionRule& rule, std::int64_t rows, std::int64_t row_bytes,
                         std::int64_t most_parts);

// Returns the first row of part `part` of a variable. Rows are divided evenly; each of the first
// `rows % parts` parts has one row more.
std::int64_t first_row(std::int64_t rows, std::int64_t parts, std::int64_t part);

// The size in bytes of a message with gradients or values. Smaller messages reach a fraction of the
// link's rate; larger ones overlap less with computation.
inline constexpr std::int64_t kMessageBytes = std::int64_t{1} << 20;

struct PlacementOptions {
  int servers = 1;
  PartitionRule partition;
  // Parts are joined into messages of at most this number of bytes. A larger part is a message on
  // its own.
  std::int64_t message_bytes = kMessageBytes;
};

struct Placement {
  // Ranges of the arena in backward order, like the buckets of plan_buckets(). Together they cover
  // the arena.
  std::vector<Bucket> buckets;
  std::vector<int> owner;  // by bucket: the shard that has it; shard 0 has at least one bucket
};

// Computes the placement. Throws UsageError if there are more servers than parts; the message has
// both numbers. Throws UsageError if a part is larger than the longest frame of a message
// (wire::kLongestFrame).
Placement place_variables(const ArenaLayout& layout, const PlacementOptions& options);

// Returns the bytes of the largest shard divided by the mean: 1 is a perfect balance.
double imbalance(const Placement& placement, int servers);

}  // namespace syncopate::ps
