// All values of a network in one short word: equal words, equal bits.
#pragma once

#include <string>

#include "models/tensor/tensor.h"

namespace syncopate {

// FNV-1a of the block's bytes, 16 hexadecimal digits. values: on the host.
std::string weights_hash(const Tensor& values);

}  // namespace syncopate
