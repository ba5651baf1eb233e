// A product of matrices by oneDNN. Included by .cc files of this folder only.
#pragma once

#include <dnnl.h>

#include <cstdint>
#include <string>

#include "models/base/errors.h"
#include "models/base/process_limits.h"

namespace syncopate {

// Computes c [m, n] = op(a) [m, k] * op(b) [k, n] in row-major f32. op() transposes an operand if
// its letter transpose_a or transpose_b is 'T', and not if it is 'N'. Throws DeviceError,
// OutOfMemoryError.
inline void matrix_product(char transpose_a, char transpose_b, std::int64_t m, std::int64_t n,
                           std::int64_t k, const float* a, const float* b, float* c) {
  const std::int64_t lda = transpose_a == 'N' ? k : m;
  const std::int64_t ldb = transpose_b == 'N' ? n : k;
  const dnnl_status_t status =
      dnnl_sgemm(transpose_a, transpose_b, m, n, k, 1.0F, a, lda, b, ldb, 0.0F, c, n);
  if (status == dnnl_out_of_memory) {
    throw OutOfMemoryError("oneDNN: sgemm: out of memory: " + memory_advice());
  }
  if (status != dnnl_success) {
    throw DeviceError("oneDNN: sgemm: status " + std::to_string(static_cast<int>(status)));
  }
}

}  // namespace syncopate
