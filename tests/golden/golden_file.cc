#include "tests/golden/golden_file.h"

#include <cstring>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "models/base/errors.h"

namespace syncopate {
namespace {

template <typename Element>
std::vector<double> elements(std::span<const char> bytes) {
  std::vector<Element> values(bytes.size() / sizeof(Element));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(Element));
  return {values.begin(), values.end()};
}

}  // namespace

GoldenFile read_golden_file(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  if (!stream) {
    throw FileError("cannot open " + path.string() +
                    "; run tests/golden/make_golden.py to make it");
  }
  const std::string file{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  std::uint64_t header_bytes = 0;
  check(file.size() > sizeof(header_bytes), "a golden file starts with the length of its header");
  std::memcpy(&header_bytes, file.data(), sizeof(header_bytes));
  const auto header = nlohmann::json::parse(file.substr(sizeof(header_bytes), header_bytes));
  const std::span<const char> body = std::span(file).subspan(sizeof(header_bytes) + header_bytes);

  GoldenFile golden;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") {
      golden.metadata = entry;
      continue;
    }
    const auto begin = entry["data_offsets"][0].get<std::size_t>();
    const auto end = entry["data_offsets"][1].get<std::size_t>();
    const std::span<const char> bytes = body.subspan(begin, end - begin);
    golden.tensors[name] =
        entry["dtype"] == "F64" ? elements<double>(bytes) : elements<float>(bytes);
  }
  return golden;
}

std::vector<double> kept_elements(std::span<const float> values, std::size_t limit) {
  const std::size_t stride = (values.size() + limit - 1) / limit;
  std::vector<double> kept;
  for (std::size_t i = 0; i < values.size(); i += stride) kept.push_back(values[i]);
  return kept;
}

}  // namespace syncopate
