// Writes one header of every kind into a folder: the fuzzer's initial corpus.
#include <fstream>

#include "tests/ps/wire/sample_messages.h"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  for (const auto& message : syncopate::ps::wire::sample_messages()) {
    const auto header = syncopate::ps::wire::encode(message);
    std::ofstream out(
        std::string(argv[1]) + "/" + std::string(syncopate::ps::wire::name_of(message)),
        std::ios::binary);
    out.write(reinterpret_cast<const char*>(header.data()),
              static_cast<std::streamsize>(header.size()));
    if (!out) return 1;
  }
  return 0;
}
