#include "tests/strategies/collective/contract.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "models/tensor/sums.h"

namespace syncopate {
namespace {

// The elements differ in magnitude, so that another order of additions would give other bits.
float addend(int rank, std::int64_t element) {
  auto x = static_cast<std::uint64_t>(element) * 0x9E3779B97F4A7C15U +
           static_cast<std::uint64_t>(rank + 1) * 0xD1B54A32D192ED03U;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
  x ^= x >> 27;
  const auto mantissa = static_cast<float>(static_cast<std::int32_t>(x >> 32));
  constexpr std::array kScales = {0x1p-37F, 0x1p-34F, 0x1p-31F, 0x1p-28F};
  return mantissa * kScales[x % 4];
}

std::uint16_t to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rest = bits & 0xFFFFU;
  const std::uint32_t kept = bits >> 16;
  const bool up = rest > 0x8000U || (rest == 0x8000U && (kept & 1U) != 0);
  return static_cast<std::uint16_t>(kept + (up ? 1U : 0U));
}

float from_bf16(std::uint16_t value) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(value) << 16);
}

float rounded_to(DType dtype, float value) {
  return dtype == DType::kF32 ? value : from_bf16(to_bf16(value));
}

float element_of(const Tensor& tensor, std::int64_t i) {
  const std::byte* const data = tensor.bytes().data();
  if (tensor.dtype() == DType::kF32) {
    float value = 0.0F;
    std::memcpy(&value, data + i * 4, sizeof value);
    return value;
  }
  std::uint16_t value = 0;
  std::memcpy(&value, data + i * 2, sizeof value);
  return from_bf16(value);
}

// Returns the reference sum of one element, added rank after rank.
float reference_sum(std::int64_t element, int n, DType dtype) {
  const int first = first_addend(element, n);
  float sum = rounded_to(dtype, addend(first, element));
  for (int i = 1; i < n; ++i) {
    sum = rounded_to(dtype, sum + rounded_to(dtype, addend((first + i) % n, element)));
  }
  return sum;
}

std::string describe(const Tensor& tensor, std::int64_t index) {
  return "the sum of " + std::to_string(tensor.num_elements()) + " " +
         std::string(name(tensor.dtype())) + " elements at index " + std::to_string(index);
}

std::uint64_t hash_of(std::span<const std::byte> bytes) {
  std::uint64_t hash = 14695981039346656037U;
  for (const std::byte byte : bytes) {
    hash = (hash ^ static_cast<std::uint64_t>(byte)) * 1099511628211U;
  }
  return hash;
}

// Checks that the tensor has the same bits on every rank.
std::string compare_between_ranks(Collective& collective, const Tensor& tensor) {
  const std::uint64_t mine = hash_of(tensor.bytes());
  std::vector<std::uint64_t> all(static_cast<std::size_t>(collective.size()));
  collective.all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)));
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank] != mine) {
      return "rank " + std::to_string(rank) + " has other bits than rank " +
             std::to_string(collective.rank());
    }
  }
  return "";
}

std::byte pattern(int rank, std::size_t i) {
  return static_cast<std::byte>((static_cast<std::size_t>(rank) * 31 + i * 7 + i / 251) % 256);
}

}  // namespace

void fill_addend(const Tensor& tensor, int rank, std::int64_t index) {
  std::byte* const data = tensor.bytes().data();
  for (std::int64_t i = 0; i < tensor.num_elements(); ++i) {
    const float value = addend(rank, index + i);
    if (tensor.dtype() == DType::kF32) {
      std::memcpy(data + i * 4, &value, sizeof value);
    } else {
      const std::uint16_t word = to_bf16(value);
      std::memcpy(data + i * 2, &word, sizeof word);
    }
  }
}

std::string compare_with_sum(const Tensor& tensor, int n, std::int64_t index,
                             const SumContract& contract) {
  // The tolerance for another order of additions: half a unit in the last place of the largest sum,
  // per addition.
  const float tolerance =
      static_cast<float>(n) * 64.0F * (tensor.dtype() == DType::kF32 ? 0x1p-23F : 0x1p-7F);
  for (std::int64_t i = 0; i < tensor.num_elements(); ++i) {
    const float found = element_of(tensor, i);
    const float expected = reference_sum(index + i, n, tensor.dtype());
    const bool same = contract.one_order ? std::bit_cast<std::uint32_t>(found) ==
                                               std::bit_cast<std::uint32_t>(expected)
                                         : std::abs(found - expected) <= tolerance;
    if (!same) {
      return describe(tensor, index) + ": element " + std::to_string(i) + " is " +
             std::to_string(found) + ", expected " + std::to_string(expected);
    }
  }
  return "";
}

std::string check_sum(Collective& collective, const SumContract& contract, std::int64_t length,
                      std::int64_t index, DType dtype) {
  const Tensor tensor = make_host_tensor({length}, dtype);
  fill_addend(tensor, collective.rank(), index);
  collective.wait(collective.all_reduce(tensor, index));
  const std::string wrong = compare_with_sum(tensor, collective.size(), index, contract);
  // This rank compares its bits even if its sum is wrong, because the other ranks take part in the
  // comparison.
  const std::string differs = compare_between_ranks(collective, tensor);
  if (!wrong.empty()) return wrong;
  return differs.empty() ? "" : describe(tensor, index) + ": " + differs;
}

std::string check_sums(Collective& collective, const SumContract& contract) {
  const std::int64_t n = collective.size();
  const std::vector<std::int64_t> lengths = {0, 1, n - 1, 10007, 3 * kBlockElements * n + 17};
  const std::vector<std::int64_t> middles = {1, kBlockElements - 1, 2 * kBlockElements + 5000};
  std::string wrong;
  for (const DType dtype : {DType::kF32, DType::kBf16}) {
    for (const std::int64_t length : lengths) {
      if (wrong.empty()) wrong = check_sum(collective, contract, length, 0, dtype);
    }
    for (const std::int64_t index : middles) {
      if (wrong.empty()) wrong = check_sum(collective, contract, 10007, index, dtype);
      if (wrong.empty()) {
        wrong = check_sum(collective, contract, kBlockElements * (n + 1) + 3, index, dtype);
      }
    }
  }
  return wrong;
}

std::string check_several_under_way(Collective& collective, const SumContract& contract) {
  struct Piece {
    Tensor tensor;
    std::int64_t index = 0;
    WorkId work = 0;
  };
  const Tensor& block = collective.block();
  const std::int64_t length = block.num_elements();
  std::vector<Piece> pieces;
  for (std::int64_t part = 0; part < 4; ++part) {  // in descending order, as buckets are pushed
    const std::int64_t begin = length * (3 - part) / 4;
    pieces.push_back({block.rows(begin, length * (4 - part) / 4), begin, 0});
  }
  pieces.push_back({make_host_tensor({3}, DType::kF32), length, 0});
  pieces.push_back({make_host_tensor({2 * kBlockElements}, DType::kBf16), 77, 0});
  for (Piece& piece : pieces) fill_addend(piece.tensor, collective.rank(), piece.index);
  for (Piece& piece : pieces) piece.work = collective.all_reduce(piece.tensor, piece.index);
  // Each rank waits for its all-reduces in an order of its own.
  std::vector<std::size_t> order = {3, 5, 0, 4, 2, 1};
  std::rotate(order.begin(), order.begin() + collective.rank() % 6, order.end());
  std::string wrong;
  for (const std::size_t i : order) {
    collective.wait(pieces[i].work);
    const std::string found =
        compare_with_sum(pieces[i].tensor, collective.size(), pieces[i].index, contract);
    if (wrong.empty()) wrong = found;
  }
  for (const Piece& piece : pieces) {
    const std::string differs = compare_between_ranks(collective, piece.tensor);
    if (wrong.empty()) wrong = differs;
  }
  return wrong;
}

std::string check_many_small(Collective& collective, const SumContract& contract) {
  constexpr int kRounds = 6;
  constexpr std::size_t kAtOnce = 100;
  std::vector<Tensor> tensors;
  for (std::size_t i = 0; i < kAtOnce; ++i) {
    tensors.push_back(make_host_tensor({static_cast<std::int64_t>(i % 40)}, DType::kF32));
  }
  std::vector<WorkId> works(kAtOnce);
  for (int round = 0; round < kRounds; ++round) {
    for (std::size_t i = 0; i < kAtOnce; ++i) {
      const auto index = static_cast<std::int64_t>(i) * 1000;
      fill_addend(tensors[i], collective.rank(), index);
      works[i] = collective.all_reduce(tensors[i], index);
    }
    for (std::size_t i = 0; i < kAtOnce; ++i) {
      collective.wait(works[i]);
      const auto index = static_cast<std::int64_t>(i) * 1000;
      const std::string wrong = compare_with_sum(tensors[i], collective.size(), index, contract);
      if (!wrong.empty()) return wrong;
    }
  }
  return "";
}

std::string check_all_gather(Collective& collective) {
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{1}, std::size_t{12345}, Collective::kMostGatheredBytes}) {
    std::vector<std::byte> mine(size);
    for (std::size_t i = 0; i < size; ++i) mine[i] = pattern(collective.rank(), i);
    std::vector<std::byte> all(size * static_cast<std::size_t>(collective.size()));
    collective.all_gather(mine, all);
    for (int rank = 0; rank < collective.size(); ++rank) {
      const auto theirs = std::span(all).subspan(static_cast<std::size_t>(rank) * size, size);
      for (std::size_t i = 0; i < size; ++i) {
        if (theirs[i] == pattern(rank, i)) continue;
        return "all_gather of " + std::to_string(size) + " bytes: byte " + std::to_string(i) +
               " of rank " + std::to_string(rank) + " is wrong";
      }
    }
  }
  return "";
}

std::string check_broadcast(Collective& collective) {
  for (int root = 0; root < collective.size(); ++root) {
    for (const std::size_t size : {0, 1, 300'000, 1'000'007}) {
      std::vector<std::byte> bytes(size);
      if (collective.rank() == root) {
        for (std::size_t i = 0; i < size; ++i) bytes[i] = pattern(root, i);
      }
      collective.broadcast(bytes, root);
      for (std::size_t i = 0; i < size; ++i) {
        if (bytes[i] == pattern(root, i)) continue;
        return "broadcast of " + std::to_string(size) + " bytes from rank " + std::to_string(root) +
               ": byte " + std::to_string(i) + " is wrong";
      }
    }
  }
  return "";
}

std::string check_small_beside_large(Collective& collective, const SumContract& contract) {
  const Tensor tensor = make_host_tensor({5 * kBlockElements + 1}, DType::kF32);
  fill_addend(tensor, collective.rank(), 9);
  const WorkId work = collective.all_reduce(tensor, 9);
  std::string wrong = check_all_gather(collective);
  if (wrong.empty()) wrong = check_broadcast(collective);
  collective.wait(work);
  return wrong.empty() ? compare_with_sum(tensor, collective.size(), 9, contract) : wrong;
}

std::string check_contract(Collective& collective, const SumContract& contract) {
  std::string wrong = check_sums(collective, contract);
  if (wrong.empty()) wrong = check_several_under_way(collective, contract);
  if (wrong.empty()) wrong = check_many_small(collective, contract);
  if (wrong.empty()) wrong = check_all_gather(collective);
  if (wrong.empty()) wrong = check_broadcast(collective);
  if (wrong.empty()) wrong = check_small_beside_large(collective, contract);
  return wrong;
}

}  // namespace syncopate
