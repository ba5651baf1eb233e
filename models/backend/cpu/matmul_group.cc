// The group matmul: products of matrices that are maps. Blocked maps are brought into the order of
// rows and columns, and results back.
#include <algorithm>

#include "models/backend/cpu/group.h"
#include "models/backend/cpu/matrix_product.h"

namespace syncopate {
namespace {

class MatmulGroup final : public PlainGroup {
 public:
  explicit MatmulGroup(const GroupSite& site)
      : PlainGroup(site),
        a_(site.inputs[0]),
        b_(site.inputs[1]),
        y_(site.output),
        matrices_(site.n * y_.shape[0]),
        m_(y_.shape[1]),
        n_(y_.shape[2]),
        k_(a_.shape[2]) {}

  GroupNeeds needs() const override {
    GroupNeeds needs;
    needs.forward_scratch = bytes(a_) + bytes(b_) + bytes(y_);
    if (!trains()) return needs;
    needs.backward_scratch = needs.forward_scratch + std::max(bytes(a_), bytes(b_));
    needs.inputs_in_backward = 2;
    return needs;
  }

  void forward(LaneStep& /*step*/) override {
    auto* const a = reinterpret_cast<float*>(memory().forward_scratch);
    float* const b = a + elements(a_);
    float* const y = b + elements(b_);
    read(x(), a_, a);
    read(x(1), b_, b);
    for (std::int64_t i = 0; i < matrices_; ++i) {
      matrix_product('N', 'N', m_, n_, k_, a + i * m_ * k_, b + i * k_ * n_, y + i * m_ * n_);
    }
    write(y, y_, memory().output);
  }

  void backward(LaneStep& /*step*/) override {
    auto* const a = reinterpret_cast<float*>(memory().backward_scratch);
    float* const b = a + elements(a_);
    float* const dy = b + elements(b_);
    float* const gradient = dy + elements(y_);
    read(memory().output_gradients[0], y_, dy);
    if (dx() != nullptr) {
      read(x(1), b_, b);
      for (std::int64_t i = 0; i < matrices_; ++i) {
        matrix_product('N', 'T', m_, k_, n_, dy + i * m_ * n_, b + i * k_ * n_,
                       gradient + i * m_ * k_);
      }
      write(gradient, a_, dx());
    }
    if (dx(1) != nullptr) {
      read(x(), a_, a);
      for (std::int64_t i = 0; i < matrices_; ++i) {
        matrix_product('T', 'N', k_, n_, m_, a + i * m_ * k_, dy + i * m_ * n_,
                       gradient + i * k_ * n_);
      }
      write(gradient, b_, dx(1));
    }
  }

 private:
  std::int64_t elements(const ValueType& type) const {
    return context().n * num_elements(type.shape);
  }
  std::size_t bytes(const ValueType& type) const {
    return static_cast<std::size_t>(elements(type)) * sizeof(float);
  }
  void read(const float* blocks, const ValueType& type, float* rows) const {
    kernels().blocked_to_interleaved(blocks, rows, context().blocked(type), type.channels());
  }
  void write(const float* rows, const ValueType& type, float* blocks) const {
    kernels().interleaved_to_blocked(rows, blocks, context().blocked(type), type.channels());
  }

  const ValueType a_;
  const ValueType b_;
  const ValueType y_;
  const std::int64_t matrices_;
  const std::int64_t m_;
  const std::int64_t n_;
  const std::int64_t k_;
};

}  // namespace

std::unique_ptr<Group> make_group(const GroupSite& site, const MatmulOp& /*op*/) {
  return std::make_unique<MatmulGroup>(site);
}

}  // namespace syncopate
