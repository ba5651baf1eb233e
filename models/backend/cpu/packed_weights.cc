#include "models/backend/cpu/packed_weights.h"

#include <algorithm>
#include <utility>

#include "models/backend/cpu/onednn.h"
#include "models/base/errors.h"

namespace syncopate {

struct PackedWeights::Copy {
  int parameter;
  BucketId first_bucket;                // the lowest bucket that holds elements of the parameter
  std::vector<std::uint64_t> versions;  // of all buckets of the parameter, when it was copied
  dnnl::memory::desc format;
  JoinedGroups joined;
  const float* value;  // in the arena
  Tensor plain;        // the value with joined groups; unused where none are
  Tensor memory;
  BoundPrimitive reorder;

  void refresh() const {
    if (joined.count > 1) joined.join(value, plain.f32().data());
    reorder.run();
  }
};

namespace {

struct BucketRange {
  BucketId first = 0;
  std::size_t count = 0;
};

// Returns the buckets that hold elements of a parameter. Buckets cover the arena in backward order,
// so these have consecutive numbers.
BucketRange buckets_of(const ParameterArena& arena, int parameter) {
  const std::int64_t begin = arena.layout().offset(static_cast<std::size_t>(parameter));
  const std::int64_t end = begin + arena.layout().size(static_cast<std::size_t>(parameter));
  BucketRange range;
  for (std::size_t b = arena.buckets().size(); b-- > 0;) {
    if (arena.buckets()[b].begin >= end || arena.buckets()[b].end <= begin) continue;
    range.first = static_cast<BucketId>(b);
    ++range.count;
  }
  check(range.count > 0, "every parameter has a bucket");
  return range;
}

}  // namespace

PackedWeights::PackedWeights(const OneDnn& onednn, const Graph& graph, const ParameterArena& arena)
    : onednn_(onednn), graph_(graph), arena_(arena) {}

PackedWeights::~PackedWeights() = default;

float* PackedWeights::request(int index, const JoinedGroups& joined,
                              const dnnl_memory_desc_t& plain, const dnnl_memory_desc_t& format) {
  const dnnl::memory::desc wanted(format);
  for (const auto& copy : copies_) {
    if (copy->parameter == index && copy->format == wanted) return copy->memory.f32().data();
  }
  const Parameter& parameter = graph_.parameters.at(static_cast<std::size_t>(index));
  auto copy = std::make_unique<Copy>();
  copy->parameter = index;
  const BucketRange buckets = buckets_of(arena_, index);
  copy->first_bucket = buckets.first;
  copy->versions.assign(buckets.count, 0);
  copy->format = wanted;
  copy->joined = joined;
  copy->value = arena_.value(static_cast<std::size_t>(index)).f32().data();
  if (joined.count > 1) copy->plain = make_host_tensor({joined.joined_elements()}, DType::kF32);
  copy->memory =
      make_host_tensor({static_cast<std::int64_t>(wanted.get_size() / sizeof(float))}, DType::kF32);
  copy->reorder = onednn_call("reorder of " + parameter.name, [&] {
    const dnnl::engine& engine = onednn_.engine;
    const dnnl::memory::desc source(plain);
    const dnnl::reorder::primitive_desc reorder(engine, source, engine, wanted);
    float* const from = joined.count > 1 ? copy->plain.f32().data()
                                         : const_cast<float*>(copy->value);  // it is only read
    return BoundPrimitive(
        engine, dnnl::reorder(reorder),
        {{DNNL_ARG_FROM, source, from}, {DNNL_ARG_TO, wanted, copy->memory.f32().data()}});
  });
  copies_.push_back(std::move(copy));
  return copies_.back()->memory.f32().data();
}

void PackedWeights::refresh(BucketId bucket, int lane, int lanes) {
  int turn = 0;
  for (const auto& copy : copies_) {
    if (copy->first_bucket != bucket || current(*copy)) continue;
    if (turn++ % lanes == lane) copy->refresh();
  }
}

bool PackedWeights::current(const Copy& copy) const {
  BucketId bucket = copy.first_bucket;
  for (const std::uint64_t version : copy.versions) {
    if (version != arena_.version(bucket++)) return false;
  }
  return true;
}

bool PackedWeights::current(BucketId bucket) const {
  return std::ranges::all_of(
      copies_, [&](const auto& copy) { return copy->first_bucket != bucket || current(*copy); });
}

void PackedWeights::mark_current(BucketId bucket) {
  for (const auto& copy : copies_) {
    if (copy->first_bucket != bucket) continue;
    BucketId of = bucket;
    for (std::uint64_t& version : copy->versions) version = arena_.version(of++);
  }
}

}  // namespace syncopate
