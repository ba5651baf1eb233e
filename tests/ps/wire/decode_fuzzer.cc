// The entry point for libFuzzer: decodes any bytes as a message header. A decoded message must
// encode, and decode again to an equal message. tests/README.md says how to run it.
#include <cstdlib>
#include <span>

#include "ps/wire/message.h"

// libFuzzer prescribes the name and the types of this function.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);   // NOLINT
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {  // NOLINT
  using namespace syncopate::ps::wire;                                               // NOLINT
  const auto header = std::as_bytes(std::span(data, size));
  (void)other_protocol(header);
  const auto message = decode(header);
  if (!message) return 0;
  const auto first = encode(*message);
  const auto again = decode(first);
  if (!again || encode(*again) != first) std::abort();
  return 0;
}
