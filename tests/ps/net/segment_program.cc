// One end of a segment in a process of its own, started by segment_process_test.cc:
//
//   segment_program own FILE NONCE ELEMENTS    owns a segment whose values are 0, 1, 2 ...,
//                                              writes its name to FILE, and waits to be killed
//   segment_program map NAME NONCE ELEMENTS    maps it, and sets the gradients to twice the values
//
// Exits with 0, or with 1 after an error message.
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <fstream>
#include <iostream>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include "ps/net/segment.h"

namespace syncopate::ps {
namespace {

constexpr std::chrono::seconds kTimeout(30);

void own(const std::string& file, const std::string& nonce, std::int64_t elements) {
  const SegmentOwner owner(elements, nonce);
  std::iota(owner.values().f32().begin(), owner.values().f32().end(), 0.0F);
  std::ofstream(file) << owner.name() << '\n';
  for (;;) pause();
}

void map(const std::string& name, const std::string& nonce, std::int64_t elements) {
  const auto segment = map_segment(name, nonce, elements, Deadline::after(kTimeout));
  if (!segment) throw std::runtime_error("the owner is out of reach");
  const auto values = segment->values.f32();
  for (std::size_t i = 0; i < values.size(); ++i) segment->gradients.f32()[i] = 2.0F * values[i];
}

}  // namespace
}  // namespace syncopate::ps

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  try {
    const std::int64_t elements = std::stoll(arguments.at(3));
    if (arguments.at(0) == "own") {
      syncopate::ps::own(arguments.at(1), arguments.at(2), elements);
    } else {
      syncopate::ps::map(arguments.at(1), arguments.at(2), elements);
    }
    return 0;
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
  }
  return 1;
}
