#include "tests/architecture/include_rules.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>

namespace syncopate::architecture {
namespace {

struct Floor {
  std::string_view folder;
  int height;
};

// A path belongs to the first layer whose folder it begins with. Two folders of equal height do not
// include each other.
constexpr std::array kFloors = {
    Floor{"models/base/", 0},
    Floor{"models/tensor/", 1},
    Floor{"models/graph/", 2},
    Floor{"models/optim/", 2},
    Floor{"models/zoo/", 3},
    Floor{"models/backend/", 3},
    Floor{"ps/net/", 10},
    Floor{"ps/wire/", 11},
    Floor{"ps/shard/", 12},
    Floor{"ps/coordinator/", 13},
    Floor{"ps/client/", 14},
    Floor{"ps/server/", 14},
    Floor{"strategies/cluster/resolvers/", 21},
    Floor{"strategies/cluster/", 20},
    Floor{"strategies/collective/", 21},
    Floor{"strategies/", 22},
    Floor{"worker/input/image/", 25},
    Floor{"worker/input/array/", 27},
    Floor{"worker/input/batches/", 27},
    Floor{"worker/input/drawn/", 27},
    Floor{"worker/input/pictures/", 27},
    Floor{"worker/input/record/", 28},
    Floor{"worker/input/", 26},
    Floor{"worker/checkpoint/", 31},
    Floor{"worker/train/", 32},
    Floor{"worker/run/", 33},
    Floor{"deploy/launch/", 40},
    Floor{"deploy/slurm/", 40},
    Floor{"deploy/onnx/", 40},
    Floor{"deploy/cli/", 41},
    Floor{"deploy/doctor/", 42},
    Floor{"deploy/commands/", 43},
    Floor{"deploy/", 44},
    Floor{"bench/harness/", 50},
    Floor{"bench/plots/", 51},
    Floor{"bench/step/", 52},
    Floor{"bench/input/", 53},
    Floor{"bench/all_reduce/", 52},
    Floor{"bench/ps/peers/", 52},
    Floor{"bench/compare/report/", 52},
    Floor{"bench/virtual_clock/", 52},
    Floor{"bench/compare/", 53},
    Floor{"bench/peers/", 53},
    Floor{"bench/scaling/", 53},
    Floor{"bench/ps/", 53},
    Floor{"bench/plan/", 54},
    Floor{"bench/", 55},
    Floor{"tests/", 60},
};

constexpr std::array<std::string_view, 10> kRoot = {
    "models", "ps",    "strategies", "worker",         "deploy",
    "bench",  "tests", "README.md",  "CMakeLists.txt", "CMakePresets.json"};

// CLI11, spdlog, fmt and nlohmann-json are slow to compile, so that only .cc files may include
// them.
constexpr std::array<std::string_view, 4> kSourceOnlyLibraries = {"CLI/", "spdlog/", "fmt/",
                                                                  "nlohmann/"};

// A preprocessor condition that contains one of these texts depends on a library.
constexpr std::array<std::string_view, 4> kLibraryMarks = {"HAVE_", "WITH_", "USE_",
                                                           "__has_include"};

// Headers may define these macros: GUARDED_BY and its family need macros, because two compilers
// spell the attributes differently.
constexpr std::array<std::string_view, 7> kAllowedMacros = {
    "GUARDED_BY",  "CAPABILITY", "SCOPED_CAPABILITY", "REQUIRES", "ACQUIRE",
    "TRY_ACQUIRE", "RELEASE"};

bool starts_with_any(std::string_view text, const auto& prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [&](std::string_view beginning) { return text.starts_with(beginning); });
}

std::optional<Floor> floor_of(std::string_view path) {
  for (const Floor& floor : kFloors) {
    if (path.starts_with(floor.folder)) return floor;
  }
  return std::nullopt;
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front())) != 0) {
    text.remove_prefix(1);
  }
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0) {
    text.remove_suffix(1);
  }
  return text;
}

// A Line is one line of a source file. The line "#  include <x>" has the directive "include" and
// the rest "<x>"; lines that are not directives have an empty directive.
struct Line {
  std::string_view directive;
  std::string_view rest;
};

Line parse_line(std::string_view text) {
  text = trim(text);
  if (!text.starts_with('#')) return {{}, text};
  text = trim(text.substr(1));
  std::size_t length = 0;
  while (length < text.size() && std::isalpha(static_cast<unsigned char>(text[length])) != 0)
    ++length;
  return {text.substr(0, length), trim(text.substr(length))};
}

// Returns the text between the quotes or angle brackets of an include.
std::string_view target(std::string_view rest) {
  if (rest.size() < 2) return {};
  const std::size_t end = rest.find(rest.front() == '<' ? '>' : '"', 1);
  return end == std::string_view::npos ? std::string_view{} : rest.substr(1, end - 1);
}

// Returns which rule this #include breaks, as printable text; "" if the #include breaks none.
std::string check_include(std::string_view path, std::string_view rest, bool is_header) {
  const std::string included(target(rest));
  if (rest.starts_with('<')) {
    const bool only_declares = included.ends_with("_fwd.hpp");
    if (is_header && !only_declares && starts_with_any(included, kSourceOnlyLibraries)) {
      return "includes <" + included + ">: this library belongs in .cc files only";
    }
    return "";
  }
  if (!floor_of(included)) {
    return "includes \"" + included +
           "\": expected a path from the root, as \"models/base/errors.h\"";
  }
  if (!may_include(path, included)) {
    return "includes \"" + included + "\", which is not below it: an include only points down";
  }
  return "";
}

bool asks_for_library(const Line& line) {
  const bool conditional = line.directive == "if" || line.directive == "ifdef" ||
                           line.directive == "ifndef" || line.directive == "elif";
  return conditional &&
         std::any_of(kLibraryMarks.begin(), kLibraryMarks.end(), [&](std::string_view mark) {
           return line.rest.find(mark) != std::string_view::npos;
         });
}

// Returns why a header must not contain this line; "" if a header may contain it.
std::string check_header_line(const Line& line) {
  if (line.directive.empty() && line.rest.starts_with("using namespace")) {
    return "a header says `using namespace`, which applies to every file that includes it";
  }
  if (line.directive == "define" && !starts_with_any(line.rest, kAllowedMacros)) {
    return "a header defines the macro " + std::string(line.rest.substr(0, line.rest.find(' '))) +
           "; use a function or a constant";
  }
  return "";
}

}  // namespace

bool may_include(std::string_view from, std::string_view to) {
  const std::optional<Floor> upper = floor_of(from);
  const std::optional<Floor> lower = floor_of(to);
  if (!upper || !lower) return false;
  return upper->height > lower->height || upper->folder == lower->folder;
}

Violations check_source(std::string_view path, std::string_view text) {
  Violations found;
  const bool is_header = path.ends_with(".h");
  bool has_pragma_once = false;
  int number = 0;
  const auto report = [&](const std::string& reason) {
    if (!reason.empty()) {
      found.push_back(std::string(path) + ":" + std::to_string(number) + ": " + reason);
    }
  };
  while (!text.empty()) {
    ++number;
    const std::size_t end = text.find('\n');
    const Line line = parse_line(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);

    if (line.directive == "pragma" && line.rest == "once") has_pragma_once = true;
    if (line.directive == "include") report(check_include(path, line.rest, is_header));
    if (asks_for_library(line)) {
      report("asks at compile time for a library (" + std::string(line.rest) +
             "); let CMake choose the source file");
    }
    if (is_header) report(check_header_line(line));
  }
  number = 1;
  if (is_header && !has_pragma_once) report("a header without #pragma once");
  if (!floor_of(path)) report("stands on no floor of the house");
  return found;
}

Violations check_root(const std::vector<std::string>& entries,
                      const std::vector<std::string>& ignored) {
  const auto contains = [](const auto& names, std::string_view name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  Violations found;
  for (const std::string& entry : entries) {
    if (!entry.starts_with('.') && !contains(kRoot, entry) && !contains(ignored, entry)) {
      found.push_back(entry +
                      ": the root holds the floors, README.md, CMakeLists.txt, CMakePresets.json "
                      "and dot-files, nothing else");
    }
  }
  for (const std::string_view name : kRoot) {
    if (!contains(entries, name)) found.push_back(std::string(name) + ": missing from the root");
  }
  return found;
}

}  // namespace syncopate::architecture
