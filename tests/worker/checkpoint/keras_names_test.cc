#include "worker/checkpoint/tensor_names.h"

#include <gtest/gtest.h>

namespace syncopate {
namespace {

TEST(KerasNames, AreThoseOfItsResNet50) {
  EXPECT_EQ(keras_name("conv1.weight"), "conv1_conv/kernel");
  EXPECT_EQ(keras_name("bn1.running_mean"), "conv1_bn/moving_mean");
  EXPECT_EQ(keras_name("layer1.0.conv1.bias"), "conv2_block1_1_conv/bias");
  EXPECT_EQ(keras_name("layer4.2.bn3.weight"), "conv5_block3_3_bn/gamma");
  EXPECT_EQ(keras_name("layer2.0.downsample.0.weight"), "conv3_block1_0_conv/kernel");
  EXPECT_EQ(keras_name("layer2.0.downsample.1.running_var"), "conv3_block1_0_bn/moving_variance");
  EXPECT_EQ(keras_name("fc.bias"), "predictions/bias");
  for (const char* name : {"fc.0.weight", "layer1.0.conv4.weight", "layer1.weight", "fc",
                           "layer.0.", "layer1.0.conv1.gamma", "layer1.x.conv1.weight"}) {
    EXPECT_EQ(keras_name(name), "") << name;
  }
}

}  // namespace
}  // namespace syncopate
