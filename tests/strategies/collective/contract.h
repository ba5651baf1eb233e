// Checks the contract of a Collective from one rank. The ranks may be threads of a test or separate
// processes. Every rank calls the same checks in the same order.
#pragma once

#include <cstdint>
#include <string>

#include "models/tensor/tensor.h"
#include "strategies/collective/collective.h"

namespace syncopate {

struct SumContract {
  // True if sums have the bits of the documented order of additions. Otherwise sums must be close
  // to these bits, and equal on every rank.
  bool one_order = true;
};

// Each check returns "" or a description of the error, in one line. Exceptions of the collective
// pass through.

// Sums a tensor of `length` elements whose first element has arena index `index`.
std::string check_sum(Collective& collective, const SumContract& contract, std::int64_t length,
                      std::int64_t index, DType dtype);
// Sums tensors of all critical lengths and indices, in f32 and bf16.
std::string check_sums(Collective& collective, const SumContract& contract);
// Sums parts of the collective's block() and of other memory concurrently, and waits for these sums
// in another order.
std::string check_several_under_way(Collective& collective, const SumContract& contract);
// Sums more than 256 small tensors one after the other.
std::string check_many_small(Collective& collective, const SumContract& contract);
std::string check_all_gather(Collective& collective);
std::string check_broadcast(Collective& collective);
// Calls all_gather and broadcast while an all-reduce is in progress.
std::string check_small_beside_large(Collective& collective, const SumContract& contract);

// Runs all checks of the contract.
std::string check_contract(Collective& collective, const SumContract& contract);

// Fills the tensor with the elements of rank `rank`, in the tensor's dtype.
void fill_addend(const Tensor& tensor, int rank, std::int64_t index);
// Returns "" when the tensor contains the sum of the elements of `n` ranks.
std::string compare_with_sum(const Tensor& tensor, int n, std::int64_t index,
                             const SumContract& contract);

}  // namespace syncopate
