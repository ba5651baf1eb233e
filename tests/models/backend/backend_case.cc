#include "tests/models/backend/backend_case.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

namespace syncopate {

std::string to_string(const CaseOptions& options) {
  return std::to_string(options.lanes) + " lanes, compiled for " +
         std::to_string(options.batch_size) + (options.fuse ? ", fused" : ", plain") +
         (options.winograd ? ", winograd, " : ", direct, ") + std::string(name(options.isa));
}

std::vector<Bucket> buckets_across_parameters(const ArenaLayout& layout) {
  std::vector<Bucket> buckets;
  std::int64_t end = layout.total();
  const auto cut_at = [&](std::int64_t begin) {
    buckets.push_back({begin, end});
    end = begin;
  };
  for (std::size_t i = layout.entries().size(); i-- > 0;) {
    const std::int64_t rows = layout.entries()[i].shape.front();
    if (rows < 4) continue;
    cut_at(layout.offset(i) + (rows - 2) * (layout.size(i) / rows));
    cut_at(layout.offset(i) + layout.size(i) / rows);
  }
  cut_at(0);
  return buckets;
}

Batch make_batch(const Graph& graph, const reference::Samples& samples, std::int64_t loss_divisor) {
  const DType dtype = std::get<InputOp>(graph.first_input().operation).dtype;
  Shape shape = graph.input_shape();
  shape.insert(shape.begin(), samples.size());
  Shape target = graph.target_shape();
  target.insert(target.begin(), samples.size());
  Batch batch{{make_host_tensor(shape, dtype)},
              make_host_tensor(target, graph.target_dtype()),
              samples.size(),
              loss_divisor};
  if (has_classes(graph.loss().kind)) {
    std::ranges::copy(samples.labels, batch.target.i32().begin());
  } else {
    std::ranges::transform(samples.numbers, batch.target.f32().begin(),
                           [](double number) { return static_cast<float>(number); });
  }
  batch.keys = make_host_tensor({samples.size()}, DType::kI64);
  std::ranges::copy(std::as_bytes(std::span(samples.keys)), batch.keys.bytes().begin());
  for (std::size_t i = 0; i < samples.x.size(); ++i) {
    if (dtype == DType::kU8) {
      batch.inputs[0].u8()[i] = static_cast<std::uint8_t>(samples.x[i]);
    } else if (dtype == DType::kU16) {
      const auto value = static_cast<std::uint16_t>(samples.x[i]);
      std::memcpy(batch.inputs[0].bytes().data() + i * sizeof value, &value, sizeof value);
    } else {
      batch.inputs[0].f32()[i] = static_cast<float>(samples.x[i]);
    }
  }
  return batch;
}

BackendCase::BackendCase(const Graph& graph, const reference::Variables& variables,
                         const CaseOptions& options)
    : arena(graph.parameter_layout(),
            options.buckets.empty() ? plan_buckets(graph.parameter_layout(), options.bucket_bytes)
                                    : options.buckets),
      state(graph.state_layout()),
      backend(options.make_backend ? options.make_backend()
                                   : make_cpu_backend(options.lanes, options.isa)),
      model(backend->compile(graph, arena, state,
                             {.mode = options.mode,
                              .batch_size = options.batch_size,
                              .fuse = options.fuse,
                              .winograd = options.winograd,
                              .statistics = options.statistics,
                              .updates_on_device = options.updates_on_device,
                              .device_collective = options.device_collective})),
      mode(options.mode) {
  set_values(variables);
  set_state(variables);
}

void BackendCase::set_values(const reference::Variables& variables) {
  for (std::size_t p = 0; p < variables.parameters.size(); ++p) {
    std::ranges::transform(variables.parameters[p], arena.value(p).f32().begin(),
                           [](double value) { return static_cast<float>(value); });
  }
  arena.bump_all_versions();
}

void BackendCase::set_state(const reference::Variables& variables) {
  for (std::size_t s = 0; s < variables.state.size(); ++s) {
    std::ranges::transform(variables.state[s], state.value(s).f32().begin(),
                           [](double value) { return static_cast<float>(value); });
  }
}

Scores BackendCase::step(const Batch& batch) {
  const Scores scores = model->forward(batch, [](BucketId) {});
  if (mode == Mode::kTrain) model->backward([](BucketId) {});
  return scores;
}

void expect_equal(const reference::Result& expected, const BackendCase& found, const Scores& scores,
                  const Graph& graph, double tolerance) {
  EXPECT_NEAR(scores.loss, expected.loss, tolerance * std::max(1.0, expected.loss));
  if (graph.target_shape().empty()) {
    EXPECT_EQ(scores.metrics[kMainMetric], expected.metric);
  } else {
    // Shares of pixels or numbers, and errors, are rounded.
    EXPECT_NEAR(scores.metrics[kMainMetric], expected.metric,
                std::max(1e-6, has_classes(graph.loss().kind) ? 0.0 : tolerance) *
                    std::max(1.0, expected.metric));
  }
  if (!expected.logits.empty()) {
    EXPECT_EQ(scores.num_samples * num_elements(graph.logits_shape()),
              static_cast<std::int64_t>(expected.logits.size()));
    EXPECT_LE(reference::relative_l2(expected.logits, found.model->logits().f32()), tolerance)
        << "logits";
  }
  for (std::size_t p = 0; p < expected.gradients.size(); ++p) {
    EXPECT_LE(reference::relative_l2(expected.gradients[p], found.arena.gradient(p).f32()),
              tolerance)
        << graph.parameters[p].name;
  }
  for (std::size_t s = 0; s < expected.state.size(); ++s) {
    EXPECT_LE(reference::relative_l2(expected.state[s], found.state.value(s).f32()), tolerance)
        << graph.state[s].name;
  }
}

double tolerance(const CaseOptions& options) { return options.winograd ? 1e-4 : 1e-5; }

}  // namespace syncopate
