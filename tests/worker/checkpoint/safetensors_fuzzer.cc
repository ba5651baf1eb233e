// The entry point for libFuzzer: opens any bytes as a safetensors file and reads all its tensors.
// tests/README.md says how to run it.
#include <sys/mman.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "models/base/file_descriptor.h"
#include "worker/checkpoint/safetensors.h"

// libFuzzer prescribes the name and the types of this function.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);   // NOLINT
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {  // NOLINT
  using namespace syncopate;                                                         // NOLINT
  const FileDescriptor memory(::memfd_create("fuzzed", MFD_CLOEXEC));
  if (::write(memory.get(), data, size) != static_cast<ssize_t>(size)) return 0;
  try {
    const SafetensorsReader file("/proc/self/fd/" + std::to_string(memory.get()));
    for (const TensorEntry& entry : file.tensors()) {
      std::vector<float> values(static_cast<std::size_t>(num_elements(entry.shape)));
      file.read(entry, values);
    }
    file.verify_checksum();
  } catch (const FileError&) {
  }
  return 0;
}
