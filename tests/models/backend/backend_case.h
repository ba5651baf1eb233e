// Compiles a graph by a backend with known values, and compares the results with the interpreter.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "models/backend/backend.h"
#include "models/graph/graph.h"
#include "tests/reference/random_case.h"

namespace syncopate {

struct CaseOptions {
  int lanes = 1;
  Isa isa = detect_isa();
  std::int64_t batch_size = 8;
  bool fuse = true;
  bool winograd = true;
  Mode mode = Mode::kTrain;
  std::int64_t bucket_bytes = 4096;  // makes several buckets even in small graphs
  std::vector<Bucket> buckets;       // used instead of bucket_bytes unless empty
  bool updates_on_device = false;
  StatisticsReducer* statistics = nullptr;
  DeviceCollective* device_collective = nullptr;
  std::function<std::unique_ptr<Backend>()> make_backend;  // the CPU backend if empty
};

std::string to_string(const CaseOptions& options);

// Returns buckets that cut every parameter of 4 or more rows after its first row and before its
// last two rows. A parameter then lies in three buckets, and a bucket holds parts of several
// parameters.
std::vector<Bucket> buckets_across_parameters(const ArenaLayout& layout);

// Converts samples for the interpreter to a batch for a backend.
Batch make_batch(const Graph& graph, const reference::Samples& samples, std::int64_t loss_divisor);

// A BackendCase is used by one thread. It cannot be moved, because the model refers to its arena
// and state.
struct BackendCase {
  BackendCase(const Graph& graph, const reference::Variables& variables,
              const CaseOptions& options);
  BackendCase(const BackendCase&) = delete;
  BackendCase& operator=(const BackendCase&) = delete;

  void set_values(const reference::Variables& variables);
  void set_state(const reference::Variables& variables);
  // Runs forward, and backward if the model trains, with hooks that do nothing.
  Scores step(const Batch& batch);

  ParameterArena arena;
  StateBlock state;
  std::unique_ptr<Backend> backend;
  std::unique_ptr<Model> model;
  Mode mode;
};

// Compares a backend's scores, logits, gradients (when training) and state with the interpreter's.
// The measure is the relative L2 distance of a whole tensor.
void expect_equal(const reference::Result& expected, const BackendCase& found, const Scores& scores,
                  const Graph& graph, double tolerance);

// Returns the tolerance: 1e-5 for f32 sums of up to about 5,000 terms in another order; 1e-4 with
// Winograd, whose transforms add and subtract before they multiply.
double tolerance(const CaseOptions& options);

}  // namespace syncopate
