// Tests how many samples are evaluated at a time.
#include <gtest/gtest.h>

#include "models/zoo/zoo.h"
#include "worker/train/evaluate.h"

namespace syncopate {
namespace {

TEST(EvaluationBatch, IsSmallerForLargeMapsOnly) {
  NetworkInput input{.sample_shape = {32, 32, 3},
                     .classes = 2,
                     .input = {DType::kU8, {0.5F, 0.5F, 0.5F}, {0.25F, 0.25F, 0.25F}}};
  EXPECT_EQ(evaluation_batch(build_network("resnet20", input), 128), 128);
  input.sample_shape = {512, 512, 3};
  input.target_shape = {512, 512};
  const std::int64_t batch = evaluation_batch(build_network("unet", input), 128);
  EXPECT_GE(batch, 1);
  EXPECT_LE(batch, 4);  // the first two maps of a sample alone take 128 MiB
  input.sample_shape = {8192, 8192, 3};
  input.target_shape = {8192, 8192};
  EXPECT_EQ(evaluation_batch(build_network("unet", input), 128), 1);
}

}  // namespace
}  // namespace syncopate
