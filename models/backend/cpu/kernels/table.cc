// Makes the kernel table of one instruction set; compiled once per instruction set.
#include "models/backend/cpu/kernels/kernels_isa.h"

namespace syncopate::SYNCOPATE_ISA {

CpuKernels make_cpu_kernels() {
  CpuKernels table{};
  table.block = kBlock;
  fill_activations(table);
  fill_batch_norm(table);
  fill_conv_pool(table);
  fill_dropout(table);
  fill_elementwise(table);
  fill_layer_norm(table);
  fill_pooling(table);
  fill_softmax(table);
  fill_upsampling(table);
  return table;
}

}  // namespace syncopate::SYNCOPATE_ISA
