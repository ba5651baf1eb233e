#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "models/base/random.h"
#include "models/graph/graph.h"
#include "models/zoo/zoo.h"

namespace syncopate {
namespace {

std::vector<float> counting(std::size_t size) {
  std::vector<float> values(size);
  std::iota(values.begin(), values.end(), 0.0F);
  return values;
}

// Lays out a parameter with K = 2, C = 2, R = 1 and S = 3.
Parameter small_convolution() {
  return {.name = "conv.weight",
          .shape = {2, 1, 3, 2},
          .file_shape = {2, 2, 1, 3},
          .file_axes = {2, 2, 1, 3},
          .init = Init::kHeUniform,
          .fan_in = 6};
}

TEST(FileOrder, PutsTheChannelsOfAConvolutionBeforeItsWindow) {
  std::vector<float> file(12);
  memory_to_file_order(small_convolution(), counting(12), file);
  EXPECT_EQ(file, (std::vector<float>{0, 2, 4, 1, 3, 5, 6, 8, 10, 7, 9, 11}));
}

TEST(FileOrder, ConvertsBackToMemoryOrder) {
  const std::vector<float> memory = counting(12);
  std::vector<float> file(12);
  std::vector<float> back(12);
  memory_to_file_order(small_convolution(), memory, file);
  file_to_memory_order(small_convolution(), file, back);
  EXPECT_EQ(back, memory);
}

TEST(FileOrder, PutsChannelsFirstForADenseLayerAfterAMap) {
  GraphBuilder build("test");
  const NodeId x = build.flatten(build.input({1, 3, 2}, {}));
  const Graph graph = build.finish(build.dense(x, "fc", 1));
  std::vector<float> file(6);
  memory_to_file_order(graph.parameters.at(0), counting(6), file);
  EXPECT_EQ(file, (std::vector<float>{0, 2, 4, 1, 3, 5}));
}

TEST(FileOrder, IsMemoryOrderForADenseLayerAfterAVector) {
  GraphBuilder build("test");
  const Graph graph = build.finish(build.dense(build.input({6}, {}), "fc", 1));
  std::vector<float> file(6);
  memory_to_file_order(graph.parameters.at(0), counting(6), file);
  EXPECT_EQ(file, counting(6));
}

TEST(InitialValue, IsAFunctionOfSeedNameAndFileIndex) {
  const Parameter parameter = small_convolution();
  const Tensor value = make_host_tensor(parameter.shape, DType::kF32);
  fill_initial_value(parameter, 5, value);
  // Element 3 of the parameter in memory is k = 0, s = 1, c = 1, which has index 4 in the file. The
  // limit of the He distribution is sqrt(6 / fan_in) = sqrt(6 / 6) = 1.
  const float uniform = RandomStream(5, hash_name("conv.weight")).uniform(4);
  EXPECT_EQ(value.f32()[3], 2.0F * uniform - 1.0F);
}

TEST(InitialValue, DependsOnTheSeed) {
  const Parameter parameter = small_convolution();
  const Tensor first = make_host_tensor(parameter.shape, DType::kF32);
  const Tensor second = make_host_tensor(parameter.shape, DType::kF32);
  fill_initial_value(parameter, 5, first);
  fill_initial_value(parameter, 6, second);
  EXPECT_FALSE(std::ranges::equal(first.f32(), second.f32()));
}

TEST(InitialValue, HasTheVarianceOfThePaper) {
  Parameter parameter = {.name = "w", .shape = {100'000}, .file_shape = {100'000}};
  parameter.fan_in = 50;
  parameter.fan_out = 150;
  const Tensor value = make_host_tensor(parameter.shape, DType::kF32);
  const auto variance = [&](Init init) {
    parameter.init = init;
    fill_initial_value(parameter, 1, value);
    double squares = 0.0;
    for (const float x : value.f32()) squares += static_cast<double>(x) * x;
    return squares / 100'000.0;
  };
  // The mean square of 1e5 uniform values has a relative standard deviation of
  // sqrt(4/45 / 1e5) * 3 = 0.28 %. The tolerance is five times that.
  EXPECT_NEAR(variance(Init::kHeUniform), 2.0 / 50.0, 0.015 * 2.0 / 50.0);
  EXPECT_NEAR(variance(Init::kGlorotUniform), 2.0 / 200.0, 0.015 * 2.0 / 200.0);
}

TEST(InitialValues, FillTheArenaAndLeaveThePaddingZero) {
  const Graph graph = build_network("mnist-cnn", {.sample_shape = {28, 28, 1}});
  const ArenaLayout layout = graph.parameter_layout();
  ParameterArena arena(layout, plan_buckets(layout, 1 << 20));
  fill_initial_values(graph, 1, arena);
  const auto values = arena.values().f32();
  EXPECT_EQ(arena.version(0), 2U);  // working copies made before the fill are stale
  EXPECT_NE(arena.value(0).f32()[0], 0.0F);
  for (std::size_t i = 0; i < graph.parameters.size(); ++i) {
    const std::int64_t begin = layout.offset(i) + layout.size(i);
    const std::int64_t end =
        i + 1 < graph.parameters.size() ? layout.offset(i + 1) : layout.total();
    for (std::int64_t j = begin; j < end; ++j) {
      ASSERT_EQ(values[static_cast<std::size_t>(j)], 0.0F) << "behind " << graph.parameters[i].name;
    }
  }
}

TEST(InitialState, IsMeanZeroAndVarianceOne) {
  const Graph graph = build_network("resnet20", {.sample_shape = {32, 32, 3}});
  StateBlock state(graph.state_layout());
  fill_initial_state(graph, state);
  EXPECT_EQ(state.value(0).f32()[0], 0.0F);
  EXPECT_EQ(state.value(1).f32()[0], 1.0F);
}

}  // namespace
}  // namespace syncopate
