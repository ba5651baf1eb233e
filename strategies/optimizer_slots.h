// An update rule and the slots that belong to one copy of the variables.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "models/optim/optimizer.h"
#include "models/tensor/tensor.h"
#include "strategies/strategy.h"

namespace syncopate {

class OptimizerSlots {
 public:
  // elements: of the arena. Throws what make_optimizer throws.
  OptimizerSlots(const OptimizerOptions& options, std::int64_t elements)
      : optimizer_(make_optimizer(options)) {
    for (std::size_t i = 0; i < optimizer_->slot_names().size(); ++i) {
      tensors_.push_back(make_host_tensor({elements}, DType::kF32));
    }
  }

  const Optimizer& optimizer() const noexcept { return *optimizer_; }
  std::span<const Tensor> tensors() const noexcept { return tensors_; }
  std::vector<Snapshot::Slot> named() const {
    std::vector<Snapshot::Slot> slots;
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      slots.push_back({std::string(optimizer_->slot_names()[i]), tensors_[i]});
    }
    return slots;
  }

 private:
  std::unique_ptr<Optimizer> optimizer_;
  std::vector<Tensor> tensors_;
};

}  // namespace syncopate
