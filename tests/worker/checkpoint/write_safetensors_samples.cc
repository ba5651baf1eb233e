// Writes small safetensors files into a folder: the fuzzer's initial corpus.
#include <fstream>
#include <string>

#include "tests/worker/checkpoint/safetensors_file.h"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  using namespace syncopate;  // NOLINT
  std::vector<RawTensor> tensors;
  for (const char* dtype : {"F64", "I64", "U64", "F32", "I32", "U32", "F16", "BF16", "I16", "U16",
                            "I8", "U8", "BOOL", "F8_E4M3", "F4"}) {
    // 8 bytes: elements of 64 bits to 4 bits.
    const std::string name(dtype);
    const std::size_t bytes = name == "F4" || name.find('8') != std::string::npos || name == "BOOL"
                                  ? 1
                              : name.find("16") != std::string::npos ? 2
                              : name.find("32") != std::string::npos ? 4
                                                                     : 8;
    const auto count = static_cast<std::int64_t>(name == "F4" ? 16 : 8 / bytes);
    tensors.push_back({name, name, {count}, std::string(8, '\1')});
  }
  const std::string files[] = {
      safetensors_bytes(tensors), safetensors_bytes({}),
      safetensors_bytes({{"a.b", "F32", {}, "abcd"}, {"c", "I64", {0, 3}, ""}}), [] {
        const std::string header =
            R"({"__metadata__":{"checksum":"00000000","format_version":"1"}})";
        return bytes_of<std::uint64_t>({header.size()}) + header;
      }()};
  int number = 0;
  for (const std::string& file : files) {
    std::ofstream out(std::string(argv[1]) + "/file" + std::to_string(number++), std::ios::binary);
    out << file;
    if (!out) return 1;
  }
  return 0;
}
