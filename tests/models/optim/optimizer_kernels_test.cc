// Tests that the bits of an update do not depend on the slicing or the instruction set.
#include "models/optim/kernels/optimizer_kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <vector>

#include "models/base/isa.h"
#include "models/base/random.h"

namespace syncopate {
namespace {

constexpr std::int64_t kSize = 3001;  // not a multiple of any vector width

constexpr SgdConstants kSgdConstants = {
    .learning_rate = 0.03F, .weight_decay = 0.01F, .momentum = 0.9F};
constexpr AdamConstants kAdamConstants = {.weight_decay = 0.01F,
                                          .value_scale = 0.999F,
                                          .beta1 = 0.9F,
                                          .beta2 = 0.999F,
                                          .one_minus_beta1 = 0.1F,
                                          .one_minus_beta2 = 0.001F,
                                          .step_size = 0.01F,
                                          .denominator_scale = 31.0F,
                                          .epsilon = 1e-8F};

enum class Rule { kSgd, kMomentum, kNesterov, kAdam, kDisplacement };
constexpr std::array kRules = {Rule::kSgd, Rule::kMomentum, Rule::kNesterov, Rule::kAdam,
                               Rule::kDisplacement};

struct Arrays {
  std::vector<float> value;
  std::vector<float> gradient;
  std::vector<float> first_slot;
  std::vector<float> second_slot;

  bool same_bits(const Arrays& other) const {
    const auto same = [](const std::vector<float>& a, const std::vector<float>& b) {
      return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
    };
    return same(value, other.value) && same(first_slot, other.first_slot) &&
           same(second_slot, other.second_slot);
  }
};

// Returns arrays of magnitudes from 1e-30 to 1. The squares of small elements are denormal.
Arrays random_arrays() {
  const RandomStream random(3, 4);
  std::uint64_t next = 0;
  const auto draw = [&](bool positive) {
    std::vector<float> values;
    for (std::int64_t i = 0; i < kSize; ++i) {
      const float size =
          std::ldexp(random.uniform(next), -static_cast<int>(random.below(next + 1, 100)));
      const bool negative = !positive && random.below(next + 2, 2) == 1;
      values.push_back(negative ? -size : size);
      next += 3;
    }
    return values;
  };
  Arrays arrays;
  arrays.value = draw(false);
  arrays.gradient = draw(false);
  arrays.first_slot = draw(false);
  arrays.second_slot = draw(true);
  return arrays;
}

void update(Rule rule, const OptimizerKernels& kernels, Arrays& arrays, std::int64_t begin,
            std::int64_t end) {
  const std::int64_t n = end - begin;
  float* value = arrays.value.data() + begin;
  const float* gradient = arrays.gradient.data() + begin;
  float* first = arrays.first_slot.data() + begin;
  float* second = arrays.second_slot.data() + begin;
  switch (rule) {
    case Rule::kSgd:
      return kernels.sgd(n, value, gradient, kSgdConstants);
    case Rule::kMomentum:
      return kernels.momentum(n, value, gradient, first, kSgdConstants);
    case Rule::kNesterov:
      return kernels.nesterov(n, value, gradient, first, kSgdConstants);
    case Rule::kAdam:
      return kernels.adam(n, value, gradient, first, second, kAdamConstants);
    case Rule::kDisplacement:
      return kernels.displacement(n, value, gradient, first, 0.3F);
  }
}

// Returns the instruction sets of this machine, lowest first.
std::vector<Isa> supported_isas() {
  std::vector<Isa> isas;
  for (const Isa isa : {Isa::kV2, Isa::kV3, Isa::kV4}) {
    if (isa <= detect_isa()) isas.push_back(isa);
  }
  return isas;
}

TEST(OptimizerKernels, GiveTheSameBitsOnEveryInstructionSet) {
  for (const Rule rule : kRules) {
    Arrays baseline = random_arrays();
    update(rule, optimizer_kernels(Isa::kV2), baseline, 0, kSize);
    EXPECT_FALSE(baseline.same_bits(random_arrays())) << "the rule does nothing";
    for (const Isa isa : supported_isas()) {
      Arrays arrays = random_arrays();
      update(rule, optimizer_kernels(isa), arrays, 0, kSize);
      EXPECT_TRUE(arrays.same_bits(baseline)) << name(isa) << ", rule " << static_cast<int>(rule);
    }
  }
}

TEST(OptimizerKernels, GiveTheSameBitsForSlices) {
  for (const Rule rule : kRules) {
    for (const Isa isa : supported_isas()) {
      Arrays whole = random_arrays();
      update(rule, optimizer_kernels(isa), whole, 0, kSize);
      for (std::uint64_t trial = 0; trial < 20; ++trial) {
        const RandomStream random(trial, 0);
        Arrays sliced = random_arrays();
        std::uint64_t draws = 0;
        for (std::int64_t begin = 0; begin < kSize;) {
          const std::int64_t end = std::min(kSize, begin + random.below(draws++, 200));
          update(rule, optimizer_kernels(isa), sliced, begin, end);
          begin = end;
        }
        ASSERT_TRUE(sliced.same_bits(whole)) << name(isa) << ", rule " << static_cast<int>(rule);
      }
    }
  }
}

}  // namespace
}  // namespace syncopate
