// The networks that --model can name. Each network is a short function that builds a graph.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "models/graph/network_input.h"

namespace syncopate {

// Builds the network of TensorFlow's tf.distribute guides: 3x3 convolution without padding to 32
// channels, ReLU, 2x2 max-pooling, dense layer of 64, ReLU, dense layer of `classes`.
Graph mnist_cnn(const NetworkInput& input);
// Builds a network of a dense layer of 128, ReLU, and a dense layer of `classes`.
Graph mlp(const NetworkInput& input);
// Build residual networks for small images, with shortcuts without parameters (option A). Source:
// He et al. 2016, section 4.2.
Graph resnet20(const NetworkInput& input);
Graph resnet56(const NetworkInput& input);
// Builds a residual network of bottlenecks, with projections where the shape changes. Samples are
// at least 32x32. Source: He et al. 2016, table 1.
Graph resnet50(const NetworkInput& input);
// Builds the ResNet50 of Keras: the stride of a bottleneck is in its first 1x1 convolution,
// convolutions have biases, and epsilon is 1.001e-5. Weights of resnet50 would load into it and be
// wrong. Source: keras/src/applications/resnet.py.
Graph resnet50_v1(const NetworkInput& input);

// Builds MobileNetV2 of width 1 as torchvision has it, dropout included. Samples are at least
// 32x32. Source: Sandler et al. 2018.
Graph mobilenet_v2(const NetworkInput& input);
// Builds VGG-16 as torchvision has it, dropout included. Samples are at least 32x32; torchvision's
// weights fit samples of 224x224. Source: Simonyan and Zisserman 2014, configuration D.
Graph vgg16(const NetworkInput& input);
// Build networks that give a class for each pixel. Height and width of a sample are multiples of
// 16. fcn: four convolutions with stride 2 and four transposed ones, padded as by TensorFlow's
// "same", with sums of maps of one size between them: the network of the guides of OTBTF. unet:
// Ronneberger et al. 2015 with padded convolutions and batch norms, with names of layers that are
// common in PyTorch.
Graph fcn(const NetworkInput& input);
Graph unet(const NetworkInput& input);

struct NetworkRow {
  std::string_view name;
  std::string_view help;
  Graph (*build)(const NetworkInput&);
  bool labels_pixels = false;  // gives a class for each pixel
};
// Returns the table of networks that --model can name.
std::span<const NetworkRow> networks() noexcept;

// What a value of --model that names a network file begins with: file:NET.json.
inline constexpr std::string_view kNetworkFile = "file:";
// Returns the values that --model takes: the names of the table, and "file:NET.json".
std::vector<std::string_view> network_names();

// Returns why a file is no value of --model, and what to type; "" for a text that names no file of
// a known kind.
std::string why_no_network(std::string_view model);

// Builds the network of a value of --model. Throws UsageError for an unknown name (the message
// lists the known ones) and as parse_network_file() does, FileError when the file cannot be read,
// and ShapeError when the samples do not fit.
Graph build_network(std::string_view model, const NetworkInput& input);

}  // namespace syncopate
