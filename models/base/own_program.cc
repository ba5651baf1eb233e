#include "models/base/own_program.h"

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>
#include <string_view>

#include "models/base/errors.h"

namespace syncopate {

std::filesystem::path own_file() {
  // The file that contains this function is the program, since this library is a static one.
  const auto address = reinterpret_cast<std::uintptr_t>(&own_file);
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
    if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR, &begin, &end) != 2) continue;
    const std::size_t path = line.find('/');
    if (address < begin || address >= end || path == std::string::npos) continue;
    std::string file = line.substr(path);
    // The file was replaced while the program runs: what has its name now starts again.
    constexpr std::string_view kDeleted = " (deleted)";
    if (file.ends_with(kDeleted) && !std::filesystem::exists(file)) {
      file.resize(file.size() - kDeleted.size());
    }
    return file;
  }
  throw FileError("/proc/self/maps does not name the file of this program");
}

std::filesystem::path own_program() {
  const std::filesystem::path file = own_file();
  const std::filesystem::path folder = file.parent_path();
  const std::filesystem::path script = folder.parent_path() / "bin" / file.filename();
  return folder.filename() == "programs" && std::filesystem::exists(script) ? script : file;
}

}  // namespace syncopate
