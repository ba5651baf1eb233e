#include "worker/checkpoint/weights_hash.h"

#include <array>
#include <cstdio>
#include <span>

#include "models/base/random.h"

namespace syncopate {

std::string weights_hash(const Tensor& values) {
  const std::span<const std::byte> bytes = values.bytes();
  std::array<char, 17> text{};
  std::snprintf(text.data(), text.size(), "%016llx",
                static_cast<unsigned long long>(
                    hash_name({reinterpret_cast<const char*>(bytes.data()), bytes.size()})));
  return text.data();
}

}  // namespace syncopate
