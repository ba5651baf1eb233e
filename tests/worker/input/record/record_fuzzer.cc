// The entry point for libFuzzer: reads any bytes as a TFRecord file, as an Example and as a
// serialized tensor. tests/README.md says how to run it.
#include <stdlib.h>
#include <unistd.h>

#include <cstdlib>
#include <span>
#include <string>

#include "models/base/errors.h"
#include "worker/input/record/example.h"
#include "worker/input/record/record_file.h"
#include "worker/input/record/stored_tensor.h"

namespace syncopate {
namespace {

void read_messages(std::span<const std::byte> bytes) {
  if (const auto example = Example::parse(bytes)) {
    (void)example->describe();
    (void)example->find("label");
  }
  try {
    const StoredTensor tensor = parse_tensor(bytes, "x");
    const auto elements = static_cast<std::size_t>(num_elements(tensor.shape));
    if (tensor.elements.size() != elements * size_bytes(tensor.type)) std::abort();
  } catch (const FileError&) {
  }
}

// Reads the bytes as a file, which RecordFile opens through /proc.
void read_file_of(std::span<const std::byte> bytes) {
  std::string name = "/dev/shm/syncopate-fuzz-XXXXXX";
  const FileDescriptor file(::mkstemp(name.data()));
  if (!file) std::abort();
  const std::string path = "/proc/self/fd/" + std::to_string(file.get());
  ::unlink(name.c_str());
  if (::write(file.get(), bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) {
    std::abort();
  }
  try {
    UnpackedBudget budget{1 << 20};
    const RecordFile records(path, budget);
    records.scan([&](const RecordPlace& place, std::span<const std::byte> record, bool is_intact) {
      if (!is_intact) return;
      const std::vector<std::byte> again = records.read(place);
      if (!std::equal(again.begin(), again.end(), record.begin(), record.end())) std::abort();
      read_messages(record);
    });
  } catch (const FileError&) {
  }
}

}  // namespace
}  // namespace syncopate

// libFuzzer prescribes the name and the types of this function.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);   // NOLINT
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {  // NOLINT
  const auto bytes = std::as_bytes(std::span(data, size));
  syncopate::read_messages(bytes);
  syncopate::read_file_of(bytes);
  return 0;
}
