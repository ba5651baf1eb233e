// What a network takes from its data: the input, the number of classes and the kind of targets; and
// the last layers, which --head changes.
#pragma once

#include <string>
#include <vector>

#include "models/graph/graph.h"

namespace syncopate {

// The properties of a data set that determine the input and the output of a network.
struct NetworkInput {
  Shape sample_shape;  // the shape of a sample: [H, W, C] or [F]
  int classes = 10;    // or how many numbers a target has
  InputOp input;
  // The shape of a sample's target: [] for a class, [H, W] for a class of each pixel, [K] for
  // numbers.
  Shape target_shape = {};
  // Features of hidden dense layers, each with ReLU, in front of the layer that gives the classes.
  std::vector<int> head = {};
  DType target_dtype = DType::kI32;  // kF32 for numbers
  bool takes_image_size = false;     // samples are pictures, which --image-size gives another size

  // Returns the shape that a network's last values must have.
  Shape logits_shape() const;
  // Returns the loss of a network that leaves the choice to the data: softmax cross-entropy for
  // classes, the mean squared error for numbers.
  LossOp loss() const;
};

// Returns why a loss does not fit targets of this type, and what to do; empty if it fits.
std::string why_loss_does_not_fit(LossKind loss, DType target_dtype);

// Adds the last layers of a network: the layers of input.head, then a dense layer of `classes`.
// Without a head the only layer is `name`; with one the layers are name.0, name.2, ..., as PyTorch
// names the layers of nn.Sequential(Linear, ReLU, Linear). init: distribution of the weights of all
// of them. last: the layer that gives the classes.
NodeId add_classifier(GraphBuilder& build, NodeId x, const std::string& name,
                      const NetworkInput& input, Init init = Init::kGlorotUniform,
                      DenseOp last = {});

}  // namespace syncopate
