// Finds the input of the network in an ONNX file, its sides and the order of its axes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "deploy/onnx/onnx_forms.h"
#include "deploy/onnx/onnx_graph.h"

namespace syncopate {

struct OnnxInput {
  std::string name;
  std::string shown;        // see OnnxNetwork::input
  std::int64_t batch = -1;  // the fixed number of samples; -1 if it is not fixed
  OnnxForm form = OnnxForm::kVector;
  Shape sample;  // shape of a sample in memory
};

// Returns the input of the network. Adds a note to `notes` if the order of its axes is a guess.
// Throws UsageError if the file has no input or several inputs, or if a network of this program
// cannot have an input of this form.
OnnxInput read_onnx_input(const OnnxGraph& graph, std::vector<std::string>& notes);

}  // namespace syncopate
