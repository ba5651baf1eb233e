// Keras's names of the tensors of resnet50-v1. weights_file.cc accepts them beside our own, which
// are PyTorch's. Source: keras/src/applications/resnet.py, ResNet50.
#pragma once

#include <string>
#include <string_view>

namespace syncopate {

// Whether keras_name() knows the names of this network, "resnet50-v1".
bool has_keras_names(std::string_view network);

// Returns Keras's name of a tensor of resnet50-v1: "conv2_block1_1_conv/kernel" for
// "layer1.0.conv1.weight". Keras has kernels as [R, S, C, K] and [in, out]. Returns "" for a tensor
// that Keras's network lacks.
std::string keras_name(std::string_view name);

}  // namespace syncopate
