// The entry point for libFuzzer: parses any bytes as a CSV file. tests/README.md says how to run
// it.
#include <cstdlib>

#include "models/base/errors.h"
#include "tests/worker/input/array/memory_stream.h"
#include "worker/input/array/csv_table.h"

// libFuzzer prescribes the name and the types of this function.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);   // NOLINT
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {  // NOLINT
  using namespace syncopate;                                                         // NOLINT
  MemoryStream stream({reinterpret_cast<const char*>(data), size});
  try {
    const CsvTable table = read_csv(stream, "x.csv", {});
    const auto num_features = static_cast<std::size_t>(table.num_features);
    if (table.features.size() != table.targets.labels.size() * num_features) std::abort();
  } catch (const FileError&) {
  } catch (const UsageError&) {  // two columns may be the label
  }
  return 0;
}
