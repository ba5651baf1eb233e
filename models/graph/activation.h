// The activations that groups of other operations do not join. A header of its own, without a
// library's templates: the kernels that are compiled once per instruction set include it.
#pragma once

#include <cstdint>

namespace syncopate {

// Sources: Hendrycks and Gimpel 2016 (GELU, with the error function, not the approximation by
// tanh), Elfwing et al. 2017 (SiLU: x * sigmoid(x)), Howard et al. 2019 (hard swish: x * min(max(x
// + 3, 0), 6) / 6), Krizhevsky 2010 (ReLU6: min(max(x, 0), 6)).
enum class Activation : std::uint8_t { kSigmoid, kTanh, kGelu, kSilu, kHardSwish, kRelu6 };

}  // namespace syncopate
