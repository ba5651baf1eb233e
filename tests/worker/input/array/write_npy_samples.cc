// Writes the initial corpus of npy_fuzzer into the folder that the argument names.
#include <filesystem>
#include <fstream>

#include "tests/worker/input/array/npy_bytes.h"

int main(int /*argc*/, char** argv) {
  using namespace syncopate;  // NOLINT
  const std::filesystem::path folder = argv[1];
  int number = 0;
  const auto write = [&](const std::vector<std::uint8_t>& bytes) {
    std::ofstream file(folder / std::to_string(number++), std::ios::binary);
    file.write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
  };
  for (const std::uint8_t version : {1, 2, 3}) {
    write(npy_bytes("<u2", "(2, 3)", std::vector<std::uint8_t>(12), version));
  }
  write(npy_bytes("|u1", "(1, 2, 2, 3)", std::vector<std::uint8_t>(12)));
  write(npy_bytes(">i8", "(1,)", std::vector<std::uint8_t>(8)));
  write(npy_file_with_text("{'descr': [('a', '<f4')], 'fortran_order': True, 'shape': ()}", {}));
  return 0;
}
