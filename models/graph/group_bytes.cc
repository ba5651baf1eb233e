#include "models/graph/group_bytes.h"

namespace syncopate {

GroupBytes copied(const GroupValues& of) {
  return {of.inputs + of.output, of.gradients + of.input_gradients};
}
GroupBytes reading_output(const GroupValues& of) {
  return {of.inputs + of.output, of.gradients + of.output + of.input_gradients};
}
GroupBytes reading_inputs(const GroupValues& of) {
  return {of.inputs + of.output, of.gradients + of.inputs + of.input_gradients};
}
// The weight's gradient reads input and gradient; the input's reads the gradient again.
GroupBytes weighted(const GroupValues& of) {
  GroupBytes bytes{of.inputs + of.output, of.inputs + of.gradients};
  if (of.input_gradients > 0.0) bytes.backward += of.gradients + of.input_gradients;
  return bytes;
}
GroupBytes bytes_of_batch_norm(const GroupValues& of) {
  const double x = of.first_input;
  const double mask = of.relu ? of.output / 16.0 : 0.0;  // a byte for 16 bytes of the output
  GroupBytes bytes;
  bytes.forward = x + of.inputs + of.output + mask;  // the sums read x, too
  // The first backward pass reads x, gradients and mask, and stores the gradient of an added map,
  // which the second pass then reads in place of gradients and mask.
  bytes.backward = 2.0 * x + of.gradients + mask + of.input_gradients;
  bytes.backward += of.add ? of.output : of.gradients + mask;
  return bytes;
}
GroupBytes bytes_of_layer_norm(const GroupValues& of) {
  return {of.inputs + of.output, 2.0 * (of.inputs + of.gradients) + of.input_gradients};
}
GroupBytes bytes_of_max_pool(const GroupValues& of) {
  const double positions = of.output / of.element_bytes;  // a byte each
  return {of.inputs + of.output + positions, of.gradients + positions + of.input_gradients};
}
GroupBytes bytes_of_input(const GroupValues& of) {  // pixels are bytes
  return {of.output + of.output / of.element_bytes, 0.0};
}
GroupBytes bytes_of_loss(const GroupValues& of) {  // the forward pass writes the gradient
  return {of.inputs + of.input_gradients, 0.0};
}

}  // namespace syncopate
