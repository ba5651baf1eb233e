// The properties of a network that its data determine: the input, the number of classes and the
// kind of targets. Also builds the last layers, which --head changes.
#pragma once

#include <string>
#include <vector>

#include "models/graph/graph.h"

namespace syncopate {

// The properties of a data set that determine the input and the output of a network.
struct NetworkInput {
  Shape sample_shape;  // the shape of a sample: [H, W, C] or [F]
  int classes = 10;    // number of classes; for targets of numbers, numbers per target
  InputOp input;
  // The shape of a sample's target: [] for a class, [H, W] for a class of each pixel, [K] for
  // numbers.
  Shape target_shape = {};
  // The output sizes of additional dense layers, each followed by ReLU, before the layer that
  // outputs the classes.
  std::vector<int> head = {};
  DType target_dtype = DType::kI32;  // kF32 for numbers
  bool takes_image_size = false;     // samples are pictures, and --image-size resizes them

  // Returns the shape that the output of a network must have to fit these data.
  Shape logits_shape() const;
  // Returns the loss of networks that do not choose a loss: softmax cross-entropy for classes, the
  // mean squared error for numbers.
  LossOp loss() const;
};

// Returns why a loss does not fit targets of this type, and what to do; "" if the loss fits.
std::string why_loss_does_not_fit(LossKind loss, DType target_dtype);

// Adds the last layers of a network: the layers of input.head, then a dense layer with
// input.classes outputs. If input.head is empty, the only layer has the name `name`. Otherwise the
// layers have the names name.0, name.2, ..., as PyTorch names the layers of nn.Sequential(Linear,
// ReLU, Linear). init: the distribution of the initial weights of all these layers. last: the
// operation of the last dense layer.
NodeId add_classifier(GraphBuilder& build, NodeId x, const std::string& name,
                      const NetworkInput& input, Init init = Init::kGlorotUniform,
                      DenseOp last = {});

}  // namespace syncopate
