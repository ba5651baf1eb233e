// A text file of the report: there as a whole, or as it was before.
#pragma once

#include <filesystem>
#include <span>
#include <string_view>

#include "models/base/replacing_file.h"

namespace syncopate::bench {

// Throws FileError naming the file.
inline void write_whole(const std::filesystem::path& path, std::string_view text) {
  ReplacingFile file(path);
  file.write(std::as_bytes(std::span(text)));
  file.commit();
}

}  // namespace syncopate::bench
