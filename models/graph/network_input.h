// What a network takes from its data: the input and the number of classes; and the last layers,
// which --head changes.
#pragma once

#include <string>
#include <vector>

#include "models/graph/graph.h"

namespace syncopate {

// The properties of a data set that determine the input and the output of a network.
struct NetworkInput {
  Shape sample_shape;  // the shape of a sample: [H, W, C] or [F]
  int classes = 10;
  InputOp input;
  Shape target_shape =
      {};  // of a sample's target: [] for a class, [H, W] for a class of each pixel
  // Features of hidden dense layers, each with ReLU, in front of the layer that gives the classes.
  std::vector<int> head = {};
};

// Adds the last layers of a network: those of input.head, then a dense layer of `classes`. Without
// a head the only layer is `name`; with one the layers are name.0, name.2, ..., as PyTorch names
// those of nn.Sequential(Linear, ReLU, Linear). init: distribution of the weights of all of them.
NodeId add_classifier(GraphBuilder& build, NodeId x, const std::string& name,
                      const NetworkInput& input, Init init = Init::kGlorotUniform);

}  // namespace syncopate
