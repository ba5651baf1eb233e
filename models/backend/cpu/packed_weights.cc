#include "models/backend/cpu/packed_weights.h"

#include <utility>

#include "models/backend/cpu/onednn.h"

namespace syncopate {

struct PackedWeights::Copy {
  int parameter;
  BucketId bucket;
  dnnl::memory::desc format;
  Tensor memory;
  BoundPrimitive reorder;
};

namespace {

BucketId bucket_of(const ParameterArena& arena, int parameter) {
  const std::int64_t offset = arena.layout().offset(static_cast<std::size_t>(parameter));
  for (std::size_t b = 0; b < arena.buckets().size(); ++b) {
    if (arena.buckets()[b].begin <= offset && offset < arena.buckets()[b].end) {
      return static_cast<BucketId>(b);
    }
  }
  check(false, "every parameter lies in a bucket");
  return 0;
}

}  // namespace

PackedWeights::PackedWeights(const OneDnn& onednn, const Graph& graph, const ParameterArena& arena)
    : onednn_(onednn), graph_(graph), arena_(arena), versions_(arena.buckets().size(), 0) {}

PackedWeights::~PackedWeights() = default;

float* PackedWeights::request(int index, const dnnl_memory_desc_t& format) {
  const dnnl::memory::desc wanted(format);
  for (const auto& copy : copies_) {
    if (copy->parameter == index && copy->format == wanted) return copy->memory.f32().data();
  }
  const Parameter& parameter = graph_.parameters.at(static_cast<std::size_t>(index));
  const dnnl::memory::dims dims(parameter.file_axes.begin(), parameter.file_axes.end());
  auto copy = std::make_unique<Copy>();
  copy->parameter = index;
  copy->bucket = bucket_of(arena_, index);
  copy->format = wanted;
  copy->memory =
      make_host_tensor({static_cast<std::int64_t>(wanted.get_size() / sizeof(float))}, DType::kF32);
  copy->reorder = onednn_call("reorder of " + parameter.name, [&] {
    const dnnl::engine& engine = onednn_.engine;
    const dnnl::memory::desc source = arena_weight(dims);
    const dnnl::reorder::primitive_desc reorder(engine, source, engine, wanted);
    return BoundPrimitive(
        engine, dnnl::reorder(reorder),
        {{DNNL_ARG_FROM, source, arena_.value(static_cast<std::size_t>(index)).f32().data()},
         {DNNL_ARG_TO, wanted, copy->memory.f32().data()}});
  });
  copies_.push_back(std::move(copy));
  versions_.at(static_cast<std::size_t>(copies_.back()->bucket)) = 0;
  return copies_.back()->memory.f32().data();
}

void PackedWeights::refresh(BucketId bucket, int lane, int lanes) {
  int turn = 0;
  for (const auto& copy : copies_) {
    if (copy->bucket != bucket) continue;
    if (turn++ % lanes == lane) copy->reorder.run();
  }
}

bool PackedWeights::current(BucketId bucket) const {
  return versions_.at(static_cast<std::size_t>(bucket)) == arena_.version(bucket);
}

void PackedWeights::mark_current(BucketId bucket) {
  versions_.at(static_cast<std::size_t>(bucket)) = arena_.version(bucket);
}

}  // namespace syncopate
