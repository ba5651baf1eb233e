// Tests the results of a shard that one thread works on.
#include "ps/shard/shard.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <optional>
#include <utility>
#include <vector>

#include "models/backend/backend.h"
#include "models/base/errors.h"
#include "models/base/random.h"
#include "tests/ps/shard/shard_case.h"

namespace syncopate::ps {
namespace {

constexpr std::array kOptimizers = {"sgd", "momentum", "nesterov", "adam", "adamw"};
constexpr std::int64_t kSteps = 3;

// Sets the padding of a gradient to zero, as it is in every gradient of a model.
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
    EXPECT_FALSE(same_bits(shard->values(), first_values())) << name << " changes no values";
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

TEST(AShardWithBf16Answers, RoundsWhatWorkersReceiveAndNothingElse) {
  const auto exact = make_shard(decaying("adam"), 1);
  Shard shard(small_layout(), small_buckets(), make_optimizer(decaying("adam")), {}, first_values(),
              ValuesFormat::kBf16);
  shard.join(0, 1, 0);
  const std::vector<Gradient> gradients = random_gradients(1, 1);
  run_step(*exact, gradients, update_step(1));
  for (std::size_t b = 0; b < shard.buckets().size(); ++b) {
    const auto bucket = static_cast<BucketId>(b);
    const auto size = static_cast<std::size_t>(shard.element_range(bucket).count);
    PushRequest push = sync_push(0, bucket, 1, part_of(gradients[0], shard.buckets()[b]),
                                 update_step(1).learning_rate);
    std::vector<std::uint16_t> words(size);
    push.values = AnswerMemory(std::span(words));
    shard.push(push);
    std::vector<ShardEvent> events;
    shard.work(bucket, events);
    std::vector<float> floats(size);
    shard.read({.worker = 0, .incarnation = 1, .bucket = bucket, .values = floats});
    shard.work(bucket, events);
    const std::span<const float> values = exact->view(bucket).values;
    std::vector<float> rounded(values.begin(), values.end());
    round_to(ValuesFormat::kBf16, rounded);
    EXPECT_EQ(floats, rounded) << b;
    for (std::size_t i = 0; i < size; ++i) {
      ASSERT_EQ(words[i], std::bit_cast<std::uint32_t>(rounded[i]) >> 16U) << b << ", " << i;
    }
  }
  EXPECT_TRUE(same_bits(shard.values(), exact->values()));
  EXPECT_TRUE(same_bits(shard.snapshot().values, exact->values()));
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
  std::vector<Piece> pieces;
  for (BucketId bucket = 0; std::cmp_less(bucket, shard->buckets().size()); ++bucket) {
    for (const int worker : {1, 0}) {
      shard->push(sync_push(worker, bucket, 1,
                            part_of(gradients[static_cast<std::size_t>(worker)],
                                    shard->buckets()[static_cast<std::size_t>(bucket)]),
                            update_step(1).learning_rate));
    }
    while (const std::optional<Piece> piece = shard->claim(bucket, 777)) pieces.push_back(*piece);
  }
  const auto count = static_cast<std::uint32_t>(pieces.size());
  for (const std::uint32_t i : random_permutation(count, 1, 1)) shard->update(pieces[i]);
  EXPECT_TRUE(same_bits(shard->values(), reference.values()));
  EXPECT_TRUE(same_bits(shard->slots(), reference.slots()));
}

TEST(Shard, WithAPartOfTheArenaStoresItInTheOrderOfTheArena) {
  const std::vector<Gradient> gradients = random_gradients(2, 1);
  Reference reference(decaying("adam"));
  reference.run_step(gradients, update_step(1));

  const std::vector<Bucket> buckets = {{30000, 50001}, {100, 17000}};  // borders inside parameters
  const Tensor whole = first_values();
  const Tensor packed = make_host_tensor({20001 + 16900}, DType::kF32);
  std::ranges::copy(whole.rows(100, 17000).f32(), packed.f32().begin());
  std::ranges::copy(whole.rows(30000, 50001).f32(), packed.f32().begin() + 16900);
  Shard shard(small_layout(), buckets, make_optimizer(decaying("adam")), {}, packed);
  for (const int worker : {0, 1}) shard.join(worker, 1, 0);
  run_step(shard, gradients, update_step(1));

  EXPECT_TRUE(same_bits(shard.values().rows(0, 16900), reference.values().rows(100, 17000)));
  EXPECT_TRUE(same_bits(shard.values().rows(16900, 36901), reference.values().rows(30000, 50001)));
  EXPECT_TRUE(same_bits(shard.slots()[1].rows(0, 16900), reference.slots()[1].rows(100, 17000)));
  EXPECT_TRUE(std::ranges::equal(shard.view(0).values, packed.rows(16900, 36901).f32()));
}

TEST(Shard, DecaysOnlyParametersWithWeightDecay) {
  const ArenaLayout layout(
      {{.name = "weight", .shape = {2}}, {.name = "bias", .shape = {2}, .decays = false}});
  const Tensor values = make_host_tensor({layout.total()}, DType::kF32);
  for (const std::size_t p : {0, 1}) {
    for (const std::int64_t i : {0, 1}) {
      values.f32()[static_cast<std::size_t>(layout.offset(p) + i)] = 1.0F;
    }
  }
  Shard shard(layout, {{0, layout.total()}}, make_optimizer({.name = "sgd", .weight_decay = 0.5}),
              {}, values);
  for (const int worker : {0, 1}) shard.join(worker, 1, 0);
  const std::vector<Gradient> zeros(2, Gradient(static_cast<std::size_t>(layout.total())));
  run_step(shard, zeros, {.learning_rate = 0.5F, .step = 1});
  const auto bias = static_cast<std::size_t>(layout.offset(1));
  EXPECT_EQ(shard.view(0).values[0], 0.75F);
  EXPECT_EQ(shard.view(0).values[1], 0.75F);
  EXPECT_EQ(shard.view(0).values[bias], 1.0F);
  EXPECT_EQ(shard.view(0).values[bias + 1], 1.0F);
}

TEST(Shard, RaisesABucketsVersionWithTheLastPieceOfItsUpdate) {
  const auto shard = make_shard(decaying("sgd"), 2);
  const std::vector<Gradient> gradients = random_gradients(2, 1);
  const auto push = [&](int worker) {
    return shard->push(sync_push(
        worker, 1, 1, part_of(gradients[static_cast<std::size_t>(worker)], shard->buckets().at(1)),
        0.1F));
  };
  std::vector<ShardEvent> events;
  EXPECT_EQ(shard->view(1).version, 1U);
  EXPECT_TRUE(push(1));
  EXPECT_FALSE(shard->claim(1));
  EXPECT_TRUE(push(0));
  const std::optional<Piece> first = shard->claim(1, 100);
  const std::optional<Piece> rest = shard->claim(1, 1000000);
  ASSERT_TRUE(first && rest);
  EXPECT_FALSE(shard->claim(1));
  shard->update(*rest);
  shard->take_events(events);
  EXPECT_TRUE(events.empty());
  EXPECT_EQ(shard->view(1).version, 1U);
  shard->update(*first);
  shard->take_events(events);
  ASSERT_EQ(events.size(), 2U);
  for (const ShardEvent& event : events) {
    EXPECT_EQ(event.kind, ShardEvent::Kind::kApplied);
    EXPECT_EQ(event.bucket, 1);
    EXPECT_EQ(event.version, 2U);
    EXPECT_EQ(event.staleness, 0U);
  }
  EXPECT_EQ(events[0].worker, 0) << "events are ordered by worker, not by arrival";
  EXPECT_EQ(shard->view(1).version, 2U);
  EXPECT_EQ(shard->view(0).version, 1U);
}

// Two threads may end two tasks of a bucket; whichever comes first takes the events of both.
TEST(Shard, ReturnsTheEventsOfABucketInTheirOrder) {
  const auto shard = make_shard(decaying("sgd"), 1);
  const std::vector<Gradient> gradients = random_gradients(1, 1);
  const std::span<const float> gradient = part_of(gradients[0], shard->buckets().at(0));
  for (std::uint64_t step = 1; step <= 2; ++step) {
    EXPECT_TRUE(shard->push(sync_push(0, 0, step, gradient, 0.1F)));
    EXPECT_TRUE(shard->update(shard->claim(0).value()));
  }
  std::vector<ShardEvent> events;
  shard->take_events(events);
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[0].version, 2U);
  EXPECT_EQ(events[1].version, 3U);
  shard->take_events(events);
  EXPECT_EQ(events.size(), 2U) << "events are taken once";
}

TEST(Shard, DoesNotApplyALatePieceToALaterUpdate) {
  const auto shard = make_shard(decaying("sgd"), 1);
  const std::vector<Gradient> gradients = random_gradients(1, 1);
  const std::span<const float> gradient = part_of(gradients[0], shard->buckets().at(0));
  std::vector<ShardEvent> events;
  EXPECT_TRUE(shard->push(sync_push(0, 0, 1, gradient, 0.1F)));
  const Piece first = shard->claim(0).value();
  shard->update(first);
  shard->take_events(events);
  EXPECT_TRUE(shard->push(sync_push(0, 0, 2, gradient, 0.1F)));
  const Piece second = shard->claim(0).value();
  EXPECT_EQ(second.range, first.range);
  EXPECT_THROW(shard->update(first), InternalError);
  EXPECT_NO_THROW(shard->update(second));
}

TEST(Shard, ContinuesFromARestoredSnapshot) {
  const std::vector<Gradient> first = random_gradients(2, 1);
  const std::vector<Gradient> second = random_gradients(2, 2);
  const auto uninterrupted = make_shard(decaying("adam"), 2);
  run_step(*uninterrupted, first, update_step(1));

  const auto resumed = make_shard(decaying("adam"), 2);
  (void)resumed->push(sync_push(0, 0, 1, part_of(first[0], resumed->buckets().at(0)), 0.1F));
  resumed->restore(uninterrupted->snapshot());
  EXPECT_EQ(resumed->view(0).version, 2U);
  for (const int worker : {0, 1}) {
    EXPECT_FALSE(
        resumed->push(sync_push(worker, 0, 2, part_of(first[0], resumed->buckets().at(0)), 0.1F)))
        << "no worker has joined";
    resumed->join(worker, 1, 0);
  }

  run_step(*uninterrupted, second, update_step(2));
  run_step(*resumed, second, update_step(2));
  EXPECT_TRUE(same_bits(resumed->values(), uninterrupted->values()));
  EXPECT_TRUE(same_bits(resumed->slots(), uninterrupted->slots()));
}

TEST(Shard, DecodesGradientsWhileItUpdates) {
  const std::vector<Gradient> gradients = random_gradients(2, 1);
  Reference reference(decaying("sgd"));
  reference.run_step(gradients, update_step(1));
  const auto shard = make_shard(decaying("sgd"), 2);
  std::vector<ShardEvent> events;
  for (BucketId bucket = 0; std::cmp_less(bucket, shard->buckets().size()); ++bucket) {
    const Bucket range = shard->buckets()[static_cast<std::size_t>(bucket)];
    PushRequest aligned = sync_push(0, bucket, 1, part_of(gradients[0], range), 0.1F);
    // This gradient is not aligned, as a gradient in a received frame may be.
    const auto bytes = std::as_bytes(part_of(gradients[1], range));
    std::vector<std::byte> shifted(bytes.size() + 1);
    std::ranges::copy(bytes, shifted.begin() + 1);
    PushRequest unaligned = aligned;
    unaligned.id.worker = 1;
    unaligned.gradient.bytes = std::span(shifted).subspan(1);
    shard->push(aligned);
    shard->push(unaligned);
    shard->work(bucket, events);
  }
  EXPECT_TRUE(same_bits(shard->values(), reference.values()));

  // The gradient [0, -1.5, 0, ...] is encoded as one u32 index and one f32.
  const auto sparse = make_shard({}, 1);
  struct {
    std::uint32_t index = 1;
    float value = -1.5F;
  } const largest;
  PushRequest push = sync_push(0, 1, 1, {}, 1.0F);
  const Bucket range = sparse->buckets()[1];
  push.gradient = {.codec = Codec::kTopK,
                   .num_elements = range.end - range.begin,
                   .bytes = std::as_bytes(std::span(&largest, 1))};
  const std::vector<float> before(sparse->view(1).values.begin(), sparse->view(1).values.end());
  sparse->push(push);
  sparse->work(1, events);
  EXPECT_EQ(sparse->view(1).values[0], before[0]);
  EXPECT_EQ(sparse->view(1).values[1], before[1] + 1.5F);
}

TEST(Shard, AcceptsFirstValuesUntilTheFirstPush) {
  const auto shard = make_shard(decaying("momentum"), 1);
  const Shard::ElementRange window = shard->element_range(1);
  EXPECT_EQ(window.count, shard->buckets()[1].end - shard->buckets()[1].begin);
  EXPECT_EQ(shard->view(1).values.data(), shard->values().f32().data() + window.begin);

  const std::vector<float> values(static_cast<std::size_t>(window.count), 4.0F);
  const std::vector<float> momentum(values.size(), 5.0F);
  const auto bytes = [](const std::vector<float>& of) { return std::as_bytes(std::span(of)); };
  const std::vector<std::span<const std::byte>> both = {bytes(values), bytes(momentum)};
  EXPECT_TRUE(shard->write(1, 8, both));
  EXPECT_EQ(shard->view(1).version, 8U);
  EXPECT_EQ(shard->view(1).values.back(), 4.0F);
  EXPECT_EQ(shard->slots()[0].f32()[static_cast<std::size_t>(window.begin)], 5.0F);
  EXPECT_EQ(shard->view(0).version, 1U);
  EXPECT_FALSE(shard->write(1, 0, both));
  const std::vector<std::span<const std::byte>> short_one = {bytes(values).first(4)};
  EXPECT_THROW(shard->write(1, 8, short_one), ShapeError);
  EXPECT_THROW(shard->write(1, 8, {}), ShapeError);

  EXPECT_TRUE(shard->push(sync_push(0, 1, 8, values, 0.1F)))
      << "the worker joined before the write";
  EXPECT_FALSE(shard->write(1, 9, both));
  std::vector<ShardEvent> events;
  shard->work(1, events);
  EXPECT_EQ(shard->view(1).version, 9U);
}

}  // namespace
}  // namespace syncopate::ps
