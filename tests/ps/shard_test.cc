// What a shard computes, one thread at a time.
#include "ps/shard.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "models/backend/backend.h"
#include "models/base/random.h"
#include "tests/ps/shard_case.h"

namespace syncopate {
namespace {

constexpr std::array kOptimizers = {"sgd", "momentum", "nesterov", "adam", "adamw"};
constexpr std::int64_t kSteps = 3;

// Zeroes the padding, as every gradient of a model has it.
void clear_padding(std::span<float> block) {
  const ArenaLayout layout = small_layout();
  for (std::size_t p = 0; p < layout.entries().size(); ++p) {
    const std::int64_t end =
        p + 1 < layout.entries().size() ? layout.offset(p + 1) : layout.total();
    std::fill(block.begin() + layout.offset(p) + layout.size(p), block.begin() + end, 0.0F);
  }
}

TEST(Shard, WithOneWorkerGivesTheBitsOfOneDevice) {
  const auto backend = make_cpu_backend(2);
  for (const std::string name : kOptimizers) {
    const auto optimizer = make_optimizer(decaying(name));
    ParameterArena arena(small_layout(), small_buckets());
    std::ranges::copy(first_values().f32(), arena.values().f32().begin());
    clear_padding(arena.values().f32());
    std::vector<Tensor> slots;
    for (std::size_t i = 0; i < optimizer->slot_names().size(); ++i) {
      slots.push_back(make_host_tensor(arena.values().shape(), DType::kF32));
    }
    const auto shard = make_shard(decaying(name), 1);
    clear_padding(shard->values().f32());
    for (std::int64_t step = 1; step <= kSteps; ++step) {
      std::vector<Gradient> gradients = random_gradients(1, step);
      clear_padding(gradients.front());
      run_step(*shard, gradients, update_step(step));
      std::ranges::copy(gradients.front(), arena.gradients().f32().begin());
      backend->update(*optimizer, update_step(step), arena, slots, {0, small_layout().total()});
    }
    EXPECT_FALSE(same_bits(shard->values(), first_values())) << name << " does nothing";
    EXPECT_TRUE(same_bits(shard->values(), arena.values())) << name;
    EXPECT_TRUE(same_bits(shard->slots(), slots)) << name;
  }
}

TEST(Shard, AddsGradientsInTheOrderOfTheCollectivesThenUpdates) {
  for (const std::string name : kOptimizers) {
    for (const int workers : {2, 3, 4, 7}) {
      const auto shard = make_shard(decaying(name), workers);
      Reference reference(decaying(name));
      for (std::int64_t step = 1; step <= kSteps; ++step) {
        const std::vector<Gradient> gradients = random_gradients(workers, step);
        run_step(*shard, gradients, update_step(step));
        reference.run_step(gradients, update_step(step));
      }
      EXPECT_TRUE(same_bits(shard->values(), reference.values())) << name << ", " << workers;
      EXPECT_TRUE(same_bits(shard->slots(), reference.slots())) << name << ", " << workers;
    }
  }
}

TEST(Shard, GivesTheSameBitsForPiecesOfAnySize) {
  const std::vector<Gradient> gradients = random_gradients(3, 1);
  Reference reference(decaying("adam"));
  reference.run_step(gradients, update_step(1));
  for (const std::int64_t elements : {5, 64, 1000, 4096, 20000, 1000000}) {
    const auto shard = make_shard(decaying("adam"), 3);
    run_step(*shard, gradients, update_step(1), elements);
    EXPECT_TRUE(same_bits(shard->values(), reference.values())) << elements;
    EXPECT_TRUE(same_bits(shard->slots(), reference.slots())) << elements;
  }
}

TEST(Shard, GivesTheSameBitsForPiecesInAnyOrder) {
  const std::vector<Gradient> gradients = random_gradients(2, 1);
  Reference reference(decaying("momentum"));
  reference.run_step(gradients, update_step(1));
  const auto shard = make_shard(decaying("momentum"), 2);
  std::vector<Shard::Piece> pieces;
  for (BucketId bucket = 0; std::cmp_less(bucket, shard->buckets().size()); ++bucket) {
    for (const int worker : {1, 0}) {
      shard->push(worker, bucket, 1,
                  part_of(gradients[static_cast<std::size_t>(worker)],
                          shard->buckets()[static_cast<std::size_t>(bucket)]));
    }
    while (const std::optional<Shard::Piece> piece = shard->claim(bucket, 1, 777)) {
      pieces.push_back(*piece);
    }
  }
  const auto count = static_cast<std::uint32_t>(pieces.size());
  for (const std::uint32_t i : random_permutation(count, 1, 1)) {
    shard->update(pieces[i], update_step(1));
  }
  EXPECT_TRUE(same_bits(shard->values(), reference.values()));
  EXPECT_TRUE(same_bits(shard->slots(), reference.slots()));
}

TEST(Shard, ThatHoldsAPartOfTheArenaKeepsItPackedInTheArenasOrder) {
  const std::vector<Gradient> gradients = random_gradients(2, 1);
  Reference reference(decaying("adam"));
  reference.run_step(gradients, update_step(1));

  const std::vector<Bucket> buckets = {{30000, 50001}, {100, 17000}};  // inside parameters
  const Tensor whole = first_values();
  const Tensor packed = make_host_tensor({20001 + 16900}, DType::kF32);
  std::ranges::copy(whole.rows(100, 17000).f32(), packed.f32().begin());
  std::ranges::copy(whole.rows(30000, 50001).f32(), packed.f32().begin() + 16900);
  Shard shard(small_layout(), buckets, 2, make_optimizer(decaying("adam")), packed);
  run_step(shard, gradients, update_step(1));

  EXPECT_TRUE(same_bits(shard.values().rows(0, 16900), reference.values().rows(100, 17000)));
  EXPECT_TRUE(same_bits(shard.values().rows(16900, 36901), reference.values().rows(30000, 50001)));
  EXPECT_TRUE(same_bits(shard.slots()[1].rows(0, 16900), reference.slots()[1].rows(100, 17000)));
  EXPECT_TRUE(std::ranges::equal(shard.read(0).values, packed.rows(16900, 36901).f32()));
}

TEST(Shard, DecaysOnlyWhatDecays) {
  const ArenaLayout layout(
      {{.name = "weight", .shape = {2}}, {.name = "bias", .shape = {2}, .decays = false}});
  const Tensor values = make_host_tensor({layout.total()}, DType::kF32);
  for (const std::size_t p : {0, 1}) {
    for (const std::int64_t i : {0, 1}) {
      values.f32()[static_cast<std::size_t>(layout.offset(p) + i)] = 1.0F;
    }
  }
  Shard shard(layout, {{0, layout.total()}}, 2,
              make_optimizer({.name = "sgd", .weight_decay = 0.5}), values);
  const std::vector<Gradient> zeros(2, Gradient(static_cast<std::size_t>(layout.total())));
  run_step(shard, zeros, {.learning_rate = 0.5F, .step = 1});
  const auto bias = static_cast<std::size_t>(layout.offset(1));
  EXPECT_EQ(shard.read(0).values[0], 0.75F);
  EXPECT_EQ(shard.read(0).values[1], 0.75F);
  EXPECT_EQ(shard.read(0).values[bias], 1.0F);
  EXPECT_EQ(shard.read(0).values[bias + 1], 1.0F);
}

TEST(Shard, RaisesABucketsVersionWithTheLastPieceOfItsUpdate) {
  const auto shard = make_shard(decaying("sgd"), 2);
  const std::vector<Gradient> gradients = random_gradients(2, 1);
  const auto push = [&](int worker) {
    return shard->push(
        worker, 1, 1, part_of(gradients[static_cast<std::size_t>(worker)], shard->buckets().at(1)));
  };
  EXPECT_EQ(shard->read(1).version, 1U);
  EXPECT_FALSE(push(1));
  EXPECT_EQ(shard->claim(1, 1), std::nullopt);
  EXPECT_TRUE(push(0));
  const std::optional<Shard::Piece> first = shard->claim(1, 1, 100);
  const std::optional<Shard::Piece> rest = shard->claim(1, 1, 1000000);
  ASSERT_TRUE(first && rest);
  EXPECT_EQ(shard->claim(1, 1), std::nullopt);
  EXPECT_FALSE(shard->update(*rest, update_step(1)));
  EXPECT_EQ(shard->read(1).version, 1U);
  EXPECT_TRUE(shard->update(*first, update_step(1)));
  EXPECT_EQ(shard->read(1).version, 2U);
  EXPECT_EQ(shard->read(0).version, 1U);
}

TEST(Shard, GivesAThreadThatComesLateNothingOfALaterUpdate) {
  const auto shard = make_shard(decaying("sgd"), 1);
  const std::vector<Gradient> gradients = random_gradients(1, 1);
  run_step(*shard, gradients, update_step(1));
  EXPECT_TRUE(shard->push(0, 0, 2, part_of(gradients[0], shard->buckets().at(0))));
  EXPECT_EQ(shard->claim(0, 1), std::nullopt);
  EXPECT_NE(shard->claim(0, 2), std::nullopt);
}

TEST(Shard, GoesOnFromValuesWrittenFromOutside) {
  const std::vector<Gradient> first = random_gradients(2, 1);
  const std::vector<Gradient> second = random_gradients(2, 2);
  const auto uninterrupted = make_shard(decaying("adam"), 2);
  run_step(*uninterrupted, first, update_step(1));

  const auto resumed = make_shard(decaying("adam"), 2);
  (void)resumed->push(0, 0, 1, part_of(first[0], resumed->buckets().at(0)));
  std::ranges::copy(uninterrupted->values().f32(), resumed->values().f32().begin());
  for (std::size_t s = 0; s < resumed->slots().size(); ++s) {
    std::ranges::copy(uninterrupted->slots()[s].f32(), resumed->slots()[s].f32().begin());
  }
  resumed->restart();
  EXPECT_EQ(resumed->read(0).version, 2U);

  run_step(*uninterrupted, second, update_step(2));
  run_step(*resumed, second, update_step(2));
  EXPECT_TRUE(same_bits(resumed->values(), uninterrupted->values()));
  EXPECT_TRUE(same_bits(resumed->slots(), uninterrupted->slots()));
}

}  // namespace
}  // namespace syncopate
