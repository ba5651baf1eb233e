// The entry point for libFuzzer: parses any bytes as a .npy file. tests/README.md says how to run
// it.
#include <cstdlib>
#include <span>

#include "models/base/errors.h"
#include "worker/input/array/npy_file.h"

// libFuzzer prescribes the name and the types of this function.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);   // NOLINT
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {  // NOLINT
  using namespace syncopate;                                                         // NOLINT
  try {
    const NpyHeader header = parse_npy_header(std::span(data, size), "x.npy");
    if (header.data_offset + check_npy_size(header, size, "x.npy") != size) std::abort();
  } catch (const FileError&) {
  }
  return 0;
}
