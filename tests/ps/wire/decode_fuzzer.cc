// libFuzzer's way in: any bytes as the header of a message. What decodes must encode, and decode
// again to the same. tests/README.md says how to run it.
#include <cstdlib>
#include <span>

#include "ps/wire/message.h"

// The name and types are libFuzzer's.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);   // NOLINT
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {  // NOLINT
  using namespace syncopate::ps::wire;                                               // NOLINT
  const auto header = std::as_bytes(std::span(data, size));
  const auto message = decode(header);
  if (message.has_value() != is_header(header)) std::abort();
  if (!message) return 0;
  const auto first = encode(*message);
  const auto again = decode(first);
  if (!again || encode(*again) != first) std::abort();
  return 0;
}
