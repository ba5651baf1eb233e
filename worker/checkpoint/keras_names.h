// Keras's names of the tensors of resnet50-v1. weights_file.cc accepts these names in addition to
// PyTorch's names, which checkpoints have. Source: keras/src/applications/resnet.py, ResNet50.
#pragma once

#include <string>
#include <string_view>

namespace syncopate {

// Whether keras_name() has names for this network, which is so for "resnet50-v1" only.
bool has_keras_names(std::string_view network);

// Returns Keras's name of a tensor of resnet50-v1: "conv2_block1_1_conv/kernel" for
// "layer1.0.conv1.weight". The kernels of Keras have the shapes [R, S, C, K] and [in, out]. Returns
// "" for a tensor that the network of Keras does not have.
std::string keras_name(std::string_view name);

}  // namespace syncopate
