#include "models/base/secret.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <array>
#include <cerrno>
#include <string_view>

#include "models/base/errors.h"
#include "models/base/random.h"

namespace syncopate {
namespace {

// Reads at most 256 bytes, which getrandom(2) returns as a whole.
void read_random(void* bytes, std::size_t count) {
  ssize_t read = 0;
  do {
    read = getrandom(bytes, count, 0);
  } while (read < 0 && errno == EINTR);
  if (read != static_cast<ssize_t>(count)) {
    throw FileError(describe_errno("read", "random bits", errno));
  }
}

}  // namespace

std::string random_nonce() {
  std::array<unsigned char, 16> bits{};
  read_random(bits.data(), bits.size());
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const unsigned char byte : bits) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

std::string name_of_nonce(std::string_view nonce) {
  return fmt::format("{:016x}", hash_name(nonce));
}

std::uint64_t random_token() {
  std::uint64_t token = 0;
  while (token == 0) read_random(&token, sizeof token);
  return token;
}

}  // namespace syncopate
