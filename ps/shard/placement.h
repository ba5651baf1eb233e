// Which part of the network lives on which shard: balanced by bytes, with few and large messages. A
// pure function of the layout and the options, so that every worker and every server comes to the
// same one.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "models/tensor/parameter_arena.h"

namespace syncopate::ps {

// Into how many parts a variable is split, along axis 0 only. The named ones are TensorFlow's
// partitioners. Source: tensorflow/python/distribute/sharded_variable.py.
struct PartitionRule {
  enum class Kind : std::uint8_t {
    kAuto,     // variables that are too large for a message or to balance, into parts that are not
    kFixed,    // `value` parts
    kMinSize,  // as many as there are servers, none of them made smaller than `value` bytes
    kMaxSize,  // parts of at most `value` bytes
  };
  Kind kind = Kind::kAuto;
  std::int64_t value = 0;
};

// "auto", "fixed:4", "min-size:262144", "max-size:4194304". Throws UsageError that names `what`,
// such as "--partition".
PartitionRule parse_partition(std::string_view text, std::string_view what);

// Parts of a variable of `rows` rows (its axis 0) of `row_bytes` each. most_parts: 0, no limit.
// At least 1, at most `rows`. Source: as above, FixedShardsPartitioner, MinSizePartitioner,
// MaxSizePartitioner; for kAuto as kMaxSize.
std::int64_t count_parts(const PartitionRule& rule, std::int64_t rows, std::int64_t row_bytes,
                         std::int64_t most_parts);

// First row of part `part`: rows / parts each, the first rows % parts of them one more.
std::int64_t first_row(std::int64_t rows, std::int64_t parts, std::int64_t part);

struct PlacementOptions {
  int servers = 1;
  PartitionRule partition;
  // What travels in one message at most, but for a part that is larger.
  std::int64_t message_bytes = std::int64_t{1} << 20;
};

struct Placement {
  // Stretches of the arena in backward order, as plan_buckets gives them; together they cover it.
  std::vector<Bucket> buckets;
  std::vector<int> owner;  // of each bucket: a shard; shard 0 has at least one
};

// Throws UsageError when there are more servers than parts, naming both, and when a part is too
// large for a message.
Placement place_variables(const ArenaLayout& layout, const PlacementOptions& options);

// Largest shard / mean, in bytes: 1 is perfect.
double imbalance(const Placement& placement, int servers);

}  // namespace syncopate::ps
