#include "tests/models/backend/cuda/kernel_case.h"

#include <bit>
#include <cmath>

#include "models/backend/cuda/kernels/pack.h"
#include "models/base/random.h"
#include "tests/models/backend/cuda/emulated_grid.h"

namespace syncopate::cuda {

void for_each_row_case(const std::function<void(const RowShape&, std::int64_t offset)>& body) {
  constexpr RowShape kShapes[] = {{1, 1},    {1, 8},   {1, 264},  {7, 3},    {300, 1},   {65, 16},
                                  {33, 264}, {40, 99}, {9000, 1}, {9000, 8}, {1000, 64}, {1100, 5}};
  for (const RowShape& shape : kShapes) {
    for (const std::int64_t offset : {0, 1}) {
      SCOPED_TRACE("[" + std::to_string(shape.rows) + ", " + std::to_string(shape.channels) +
                   "], off by " + std::to_string(offset));
      body(shape, offset);
    }
  }
}

template <typename T>
Values draw(std::int64_t count, std::uint64_t stream, double centre, double width) {
  const RandomStream random(7, stream);
  Values values;
  for (std::int64_t i = 0; i < count; ++i) {
    const double uniform = random.uniform(static_cast<std::uint64_t>(i));
    const double value = centre + width * (2.0 * uniform - 1.0);
    values.push_back(static_cast<double>(to_float(from_float<T>(static_cast<float>(value)))));
  }
  return values;
}

template <typename T>
void expect_close(const Values& expected, const Values& found, double terms,
                  const Values& largest) {
  ASSERT_EQ(expected.size(), found.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double error = std::abs(found[i] - expected[i]);
    // The comparison `error <= allowed` is false for NaN, which must count as wrong.
    const bool right = error <= allowed<T>(expected[i], terms, largest[i]);
    ASSERT_TRUE(right) << "element " << i << " of " << expected.size() << ": expected "
                       << expected[i] << ", found " << found[i] << ", allowed error "
                       << allowed<T>(expected[i], terms, largest[i]);
  }
}

template <typename T>
void expect_close(const Values& expected, const Values& found, double terms, double largest) {
  expect_close<T>(expected, found, terms, Values(expected.size(), largest));
}

void expect_same_bits(const Outputs& expected, const Outputs& found) {
  ASSERT_EQ(expected.size(), found.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    ASSERT_EQ(expected[i].size(), found[i].size());
    for (std::size_t j = 0; j < expected[i].size(); ++j) {
      ASSERT_EQ(std::bit_cast<std::uint64_t>(expected[i][j]),
                std::bit_cast<std::uint64_t>(found[i][j]))
          << "output " << i << ", element " << j << ": " << expected[i][j] << " and "
          << found[i][j];
    }
  }
}

Outputs run_in_every_order(const std::function<Outputs()>& run) {
  const Outputs outputs = run();
  {
    SCOPED_TRACE("a second time");
    expect_same_bits(outputs, run());
  }
  SCOPED_TRACE("blocks and threads in reverse order");
  const EmulatedOrderScope reversed(EmulatedOrder::kBackward);
  expect_same_bits(outputs, run());
  return outputs;
}

template Values draw<float>(std::int64_t, std::uint64_t, double, double);
template Values draw<__nv_bfloat16>(std::int64_t, std::uint64_t, double, double);
template Values draw<__half>(std::int64_t, std::uint64_t, double, double);
template void expect_close<float>(const Values&, const Values&, double, double);
template void expect_close<__nv_bfloat16>(const Values&, const Values&, double, double);
template void expect_close<__half>(const Values&, const Values&, double, double);
template void expect_close<float>(const Values&, const Values&, double, const Values&);
template void expect_close<__nv_bfloat16>(const Values&, const Values&, double, const Values&);
template void expect_close<__half>(const Values&, const Values&, double, const Values&);

}  // namespace syncopate::cuda
