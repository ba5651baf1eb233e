// The networks that --model can name. Each network is a short function that builds a graph.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "models/graph/network_input.h"

namespace syncopate {

// Builds the network of TensorFlow's tf.distribute guides: 3x3 convolution with 32 output channels
// and without padding, ReLU, 2x2 max-pooling, dense layer with 64 outputs, ReLU, dense layer with
// input.classes outputs.
Graph mnist_cnn(const NetworkInput& input);
// Builds a network of a dense layer with 128 outputs, ReLU, and a dense layer with input.classes
// outputs.
Graph mlp(const NetworkInput& input);
// Build residual networks for small images; their shortcuts have no parameters (option A). Source:
// He et al. 2016, section 4.2.
Graph resnet20(const NetworkInput& input);
Graph resnet56(const NetworkInput& input);
// Builds a residual network of bottleneck blocks, with projection shortcuts where the shape
// changes. Samples must be at least 32x32. Source: He et al. 2016, table 1.
Graph resnet50(const NetworkInput& input);
// Builds the ResNet50 of Keras. Unlike in resnet50, the stride of a bottleneck block is in its
// first 1x1 convolution, convolutions have biases, and the epsilon of batch norms is 1.001e-5.
// Weights of resnet50 would load into this network but give wrong results. Source:
// keras/src/applications/resnet.py.
Graph resnet50_v1(const NetworkInput& input);

// Builds MobileNetV2 of width 1 as in torchvision, including dropout. Samples must be at least
// 32x32. Source: Sandler et al. 2018.
Graph mobilenet_v2(const NetworkInput& input);
// Builds VGG-16 as in torchvision, including dropout. Samples must be at least 32x32; torchvision's
// weights fit only samples of 224x224. Source: Simonyan and Zisserman 2014, configuration D.
Graph vgg16(const NetworkInput& input);
// Build networks that classify each pixel. Height and width of a sample must be multiples of 16.
// fcn: the network of the OTBTF guides, which has four convolutions with stride 2 and four
// transposed convolutions, padded as by TensorFlow's "same"; maps of equal size from both halves
// are added. unet: the network of Ronneberger et al. 2015, with padded convolutions and batch
// norms, and with the layer names that are common in PyTorch.
Graph fcn(const NetworkInput& input);
Graph unet(const NetworkInput& input);

struct NetworkRow {
  std::string_view name;
  std::string_view help;
  Graph (*build)(const NetworkInput&);
  bool labels_pixels = false;  // whether the network classifies each pixel
};
// Returns the table of networks that --model can name.
std::span<const NetworkRow> networks() noexcept;

// The prefix of a value of --model that names a network file, such as file:NET.json.
inline constexpr std::string_view kNetworkFile = "file:";
// Returns the values that --model takes: the names of networks(), and "file:NET.json".
std::vector<std::string_view> network_names();

// For a value of --model that looks like the name of a file: returns why --model does not take this
// file, and what to type instead. Returns "" if the file type is unknown.
std::string why_no_network(std::string_view model);

// Builds the network that a value of --model names. Throws UsageError for an unknown name, with a
// message that lists the known names, and for a network file that parse_network_file() refuses.
// Throws FileError when the file cannot be read, and ShapeError when the samples do not fit the
// network.
Graph build_network(std::string_view model, const NetworkInput& input);

}  // namespace syncopate
