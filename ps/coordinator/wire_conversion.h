// Converts positions, kinds of stop requests and staleness to fields of ps/wire/messages.fbs and
// back; no other file does. Also makes the Hello that every task sends.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ps/coordinator/data_position.h"
#include "ps/coordinator/stop_kind.h"
#include "ps/shard/consistency.h"
#include "ps/shard/gradient_codec.h"
#include "ps/shard/staleness.h"
#include "ps/wire/message.h"

namespace syncopate::ps {

wire::SampleRange to_wire(const SampleRange& range);
SampleRange from_wire(const wire::SampleRange& range);
std::vector<wire::SampleRange> to_wire(std::span<const SampleRange> ranges);
std::vector<SampleRange> from_wire(std::span<const wire::SampleRange> ranges);

// Copy a RunPosition to and from the fields of a message. BodyT is InitialisedT, StartT or
// AssignmentT.
template <typename BodyT>
void set_position(BodyT& body, const RunPosition& at) {
  body.step = at.step;
  body.samples = at.samples;
  body.epoch = at.position.epoch;
  body.offset = at.position.offset;
  body.untrained = to_wire(at.position.untrained);
  body.rules = at.rules;
  body.pushes = at.pushes;
}
template <typename BodyT>
RunPosition position_of(const BodyT& body) {
  return {.step = body.step,
          .samples = body.samples,
          .position = {body.epoch, body.offset, from_wire(body.untrained)},
          .rules = body.rules,
          .pushes = body.pushes};
}

// Convert a kind of stop request, or nullopt for no stop request, to and from a number in a
// message. The number of nullopt is -1. A number that this version does not know is read as
// kRequest.
int to_wire(std::optional<StopKind> kind);
std::optional<StopKind> stop_kind_from_wire(int number);
std::vector<int> to_wire(const StopCounts& stops);
// Reads stop counts. Kinds that this version does not know are left out.
StopCounts stop_counts_from_wire(std::span<const int> stops);

// Convert a histogram to and from the fields of a message, which leave out the counts before the
// first count above zero.
std::unique_ptr<wire::StalenessT> to_wire(WorkerId worker, const StalenessHistogram& histogram);
StalenessHistogram from_wire(const wire::StalenessT& staleness);

// Returns the Hello of this process as task `index` of `role` (0 for a worker, 1 for a server).
// Only the fields that every task sends are set.
wire::HelloT make_hello(int role, int index, int workers, int servers);

inline ValuesFormat values_format(const wire::DeclarationT& declaration) noexcept {
  return declaration.bf16_values ? ValuesFormat::kBf16 : ValuesFormat::kF32;
}
// Returns the decay of the moving average of the variables; 0 if the job has no moving average.
inline double average_decay_of(const wire::DeclarationT& declaration) noexcept {
  constexpr std::size_t kIndex = 5;  // in optimizer_constants
  const auto& constants = declaration.optimizer_constants;
  return constants.size() > kIndex ? constants[kIndex] : 0.0;
}
// Returns the consistency of a declaration. Precondition: a server has accepted the declaration as
// valid.
inline Consistency consistency_of(const wire::DeclarationT& declaration) {
  return static_cast<Consistency>(declaration.consistency);
}

}  // namespace syncopate::ps
