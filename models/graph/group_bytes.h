// Counts the bytes that the kernels of a fused group move. The rows of operations refer to these
// functions (OperationRow::bytes).
#pragma once

namespace syncopate {

// The sizes of the values of a fused group for one batch, in bytes.
struct GroupValues {
  double first_input = 0.0;
  double inputs = 0.0;
  double output = 0.0;
  double gradients = 0.0;        // all gradients of the output; each reader writes one
  double input_gradients = 0.0;  // gradients of the inputs, if they are computed
  double element_bytes = 4.0;
  bool relu = false;
  bool add = false;
};
// Bytes that the kernels of a group read and write in device memory, if no data stays in a cache
// between kernels. Weights and values per channel are not counted.
struct GroupBytes {
  double forward = 0.0;
  double backward = 0.0;
};

// Count the bytes that the kernels of a fused group move. The functions differ in what the backward
// pass reads. copied(): only gradients. reading_output(): gradients and the output.
// reading_inputs(): gradients and the inputs.
GroupBytes copied(const GroupValues& of);
GroupBytes reading_output(const GroupValues& of);
GroupBytes reading_inputs(const GroupValues& of);
// Counts the bytes of a layer with a weight: a convolution or a dense layer.
GroupBytes weighted(const GroupValues& of);
GroupBytes bytes_of_batch_norm(const GroupValues& of);
GroupBytes bytes_of_layer_norm(const GroupValues& of);
GroupBytes bytes_of_max_pool(const GroupValues& of);
GroupBytes bytes_of_input(const GroupValues& of);
GroupBytes bytes_of_loss(const GroupValues& of);

}  // namespace syncopate
