// Compares updates of ranges of the arena with one update of each whole parameter.
#include "models/optim/optimizer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "models/base/errors.h"
#include "models/base/random.h"

namespace syncopate {
namespace {

ArenaLayout layout_with_padding() {
  return ArenaLayout({{.name = "weight", .shape = {100}},
                      {.name = "bias", .shape = {5}, .decays = false},
                      {.name = "other", .shape = {64}},
                      {.name = "last", .shape = {3}, .decays = false}});
}

struct Blocks {
  std::vector<float> values;
  std::vector<float> gradients;
  std::vector<float> first_slot;
  std::vector<float> second_slot;
};

// Fills the whole tensor, including the padding, with random values.
Blocks random_blocks() {
  const auto draw = [](std::uint64_t stream) {
    const RandomStream random(5, stream);
    std::vector<float> block(static_cast<std::size_t>(layout_with_padding().total()));
    for (std::size_t i = 0; i < block.size(); ++i) block[i] = random.uniform(i);
    return block;
  };
  return {draw(0), draw(1), draw(2), draw(3)};
}

void update(Blocks& blocks, Bucket range) {
  const auto optimizer = make_optimizer({.name = "adam", .weight_decay = 0.1});
  const auto window = [&](std::vector<float>& block) {
    return std::span(block).subspan(static_cast<std::size_t>(range.begin),
                                    static_cast<std::size_t>(range.end - range.begin));
  };
  const std::array slots = {window(blocks.first_slot), window(blocks.second_slot)};
  update_range(*optimizer, {.learning_rate = 0.1F, .step = 2}, layout_with_padding(), range,
               window(blocks.values), window(blocks.gradients), slots);
}

Blocks parameter_by_parameter() {
  const auto optimizer = make_optimizer({.name = "adam", .weight_decay = 0.1});
  const ArenaLayout layout = layout_with_padding();
  Blocks blocks = random_blocks();
  for (std::size_t p = 0; p < layout.entries().size(); ++p) {
    const auto window = [&](std::vector<float>& block) {
      return std::span(block).subspan(static_cast<std::size_t>(layout.offset(p)),
                                      static_cast<std::size_t>(layout.size(p)));
    };
    const std::array slots = {window(blocks.first_slot), window(blocks.second_slot)};
    optimizer->update({.learning_rate = 0.1F, .step = 2}, window(blocks.values),
                      window(blocks.gradients), slots, layout.entries()[p].decays);
  }
  return blocks;
}

bool same_bits(const Blocks& a, const Blocks& b) {
  const auto same = [](const std::vector<float>& x, const std::vector<float>& y) {
    return std::memcmp(x.data(), y.data(), x.size() * sizeof(float)) == 0;
  };
  return same(a.values, b.values) && same(a.first_slot, b.first_slot) &&
         same(a.second_slot, b.second_slot);
}

TEST(UpdateRange, GivesTheBitsOfWholeParametersAndDoesNotChangePadding) {
  const Blocks expected = parameter_by_parameter();
  const std::int64_t total = layout_with_padding().total();
  for (const std::int64_t length : {std::int64_t{1}, std::int64_t{7}, std::int64_t{64}, total}) {
    Blocks blocks = random_blocks();
    for (std::int64_t begin = 0; begin < total; begin += length) {
      update(blocks, {begin, std::min(total, begin + length)});
    }
    EXPECT_TRUE(same_bits(blocks, expected)) << "ranges of " << length << " elements";
  }
}

TEST(UpdateRange, RefusesSpansOfAnotherLength) {
  const auto optimizer = make_optimizer({.name = "sgd"});
  std::vector<float> values(10);
  const std::vector<float> gradients(10);
  EXPECT_THROW(update_range(*optimizer, {}, layout_with_padding(), {0, 11}, values, gradients, {}),
               ShapeError);
  EXPECT_THROW(update_range(*optimizer, {}, layout_with_padding(), {0, 10}, values,
                            std::span(gradients).first(9), {}),
               ShapeError);
}

}  // namespace
}  // namespace syncopate
