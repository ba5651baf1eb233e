// What every Collective promises, checked by one rank: the ranks may be threads of a test or
// processes of their own. Every rank calls the same checks in the same order.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "models/tensor/tensor.h"
#include "strategies/collective/collective.h"

namespace syncopate {

struct Promise {
  // Sums have the bits of the one order of additions. Otherwise they are close to it, and the same
  // on every rank.
  bool one_order = true;
};

// Each returns "" or what was wrong, in one line; what the collective throws passes through.

// `length` elements of which the first has arena index `index`.
std::string check_sum(Collective& collective, const Promise& promise, std::int64_t length,
                      std::int64_t index, DType dtype);
// All lengths and indices at which something may go wrong, f32 and bf16.
std::string check_sums(Collective& collective, const Promise& promise);
// Of windows of block() and of other memory, waited for in another order.
std::string check_several_under_way(Collective& collective, const Promise& promise);
// More than 256, one bucket after the other.
std::string check_many_small(Collective& collective, const Promise& promise);
std::string check_all_gather(Collective& collective);
std::string check_broadcast(Collective& collective);
// all_gather and broadcast while an all-reduce is under way.
std::string check_small_beside_large(Collective& collective, const Promise& promise);

// All of the above.
std::string check_contract(Collective& collective, const Promise& promise);

// What rank `rank` brings, as f32 or bf16 bits in the tensor's own dtype.
void fill_addend(const Tensor& tensor, int rank, std::int64_t index);
// "" when the tensor holds the sum of `n` such addends.
std::string compare_with_sum(const Tensor& tensor, int n, std::int64_t index,
                             const Promise& promise);

}  // namespace syncopate
