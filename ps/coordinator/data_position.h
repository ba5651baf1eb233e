// Positions in the training data: types that the coordinator, the client, the strategies and the
// worker's input share. wire_conversion.h converts them to messages.
#pragma once

#include <cstdint>
#include <vector>

namespace syncopate::ps {

// A range of samples: [begin, end) of one epoch's order.
struct SampleRange {
  std::int64_t epoch = 0;
  std::int64_t begin = 0;
  std::int64_t end = 0;
  bool operator==(const SampleRange&) const = default;
};

// The place in the data where the next batch starts. `epoch` counts from 0; `offset` samples of
// this epoch's order have been handed out. Asynchronous workers leave gaps: `untrained` lists the
// ranges of earlier epochs, and of this epoch before `offset`, that are still to be trained. These
// ranges are trained first, in the order of epochs; then the samples from `offset` on.
struct DataPosition {
  std::int64_t epoch = 0;
  std::int64_t offset = 0;
  std::vector<SampleRange> untrained = {};
  bool operator==(const DataPosition&) const = default;
};

// How far a run of training is, and where in the data it continues.
struct RunPosition {
  std::int64_t step = 0;       // updates applied, including those before a resume
  std::int64_t samples = 0;    // samples trained, including those before a resume
  DataPosition position = {};  // where the next batch starts
  // State of the rules that judge evaluations. The first number is the factor of the learning rate;
  // only the worker interprets the others. Empty if there are no rules, or before the first
  // evaluation.
  std::vector<double> rules = {};
  // The number of displacements that servers have applied: the place of the next one within the N
  // of an outer step with a number follows from it. Not used with gradients.
  std::int64_t pushes = 0;
  bool operator==(const RunPosition&) const = default;
};

}  // namespace syncopate::ps
