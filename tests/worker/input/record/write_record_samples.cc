// Writes the initial corpus of record_fuzzer into the folder that the argument names.
#include <array>
#include <filesystem>
#include <fstream>

#include "worker/input/record/example.h"
#include "worker/input/record/record_file.h"
#include "worker/input/record/stored_tensor.h"

int main(int /*argc*/, char** argv) {
  using namespace syncopate;  // NOLINT
  const std::filesystem::path folder = argv[1];
  int number = 0;
  const auto write = [&](const std::vector<std::byte>& bytes) {
    std::ofstream(folder / std::to_string(number++), std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
  };
  const std::vector<std::byte> tensor = serialize_tensor(
      {.type = StoredType::kU16, .shape = {1, 2, 1}, .elements = std::string("\1\0\2\0", 4)});
  const std::array<WrittenFeature, 2> features = {
      {{.name = "image", .bytes = tensor}, {.name = "label", .integer = -3}}};
  const std::vector<std::byte> example = serialize_example(features);
  std::vector<std::byte> file;
  append_record(example, file);
  append_record(tensor, file);
  write(tensor);
  write(example);
  write(file);
  return 0;
}
