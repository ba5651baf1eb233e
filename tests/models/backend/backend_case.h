// A graph compiled by the CPU backend with known values, and its results held against the
// interpreter.
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
  std::int64_t bucket_bytes = 4096;  // several buckets even in small graphs
  std::vector<Bucket> buckets;       // if any are given: instead of whole parameters
  bool updates_on_device = false;
  StatisticsReducer* statistics = nullptr;
  DeviceCollective* device_collective = nullptr;
  std::function<std::unique_ptr<Backend>()> make_backend;  // empty: the CPU's
};

std::string to_string(const CaseOptions& options);

// Buckets that end within parameters: after the first row of each and before its last but one, so
// that one parameter lies in several and a bucket holds parts of two.
std::vector<Bucket> buckets_across_parameters(const ArenaLayout& layout);

// Samples as a backend takes them.
Batch make_batch(const Graph& graph, const reference::Samples& samples, std::int64_t loss_divisor);

// One thread only. Immovable: the model refers to arena and state.
struct BackendCase {
  BackendCase(const Graph& graph, const reference::Variables& variables,
              const CaseOptions& options);
  BackendCase(const BackendCase&) = delete;
  BackendCase& operator=(const BackendCase&) = delete;

  void set_values(const reference::Variables& variables);
  void set_state(const reference::Variables& variables);
  // forward, then backward if the model trains; hooks do nothing.
  Scores step(const Batch& batch);

  ParameterArena arena;
  StateBlock state;
  std::unique_ptr<Backend> backend;
  std::unique_ptr<Model> model;
  Mode mode;
};

// Scores, logits, gradients (when training) and state, each by relative L2 over the whole tensor.
void expect_equal(const reference::Result& expected, const BackendCase& found, const Scores& scores,
                  const Graph& graph, double tolerance);

// 1e-5: f32 sums of up to some 5,000 terms, in orders of their own. 1e-4 with Winograd, whose
// transforms add and subtract before they multiply.
double tolerance(const CaseOptions& options);

}  // namespace syncopate
