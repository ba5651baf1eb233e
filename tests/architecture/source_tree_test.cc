// Checks every file of the source tree against the rules in include_rules.h.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <string>
#include <string_view>

#include "strategies/strategy_row.h"
#include "tests/architecture/include_rules.h"

namespace syncopate::architecture {
namespace {

namespace fs = std::filesystem;

fs::path root() { return SYNCOPATE_SOURCE_DIR; }

std::string read(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Returns the paths, relative to the root, of all .h and .cc files in the layers.
std::vector<std::string> source_files() {
  std::vector<std::string> paths;
  for (const char* floor : {"models", "ps", "strategies", "worker", "deploy", "bench", "tests"}) {
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root() / floor)) {
      const fs::path extension = entry.path().extension();
      if (extension == ".h" || extension == ".cc" || extension == ".cu") {
        paths.push_back(entry.path().lexically_relative(root()).generic_string());
      }
    }
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

// Returns the top-level names that .gitignore excludes: the line "/build/" gives "build".
std::vector<std::string> ignored_entries() {
  std::vector<std::string> names;
  std::ifstream in(root() / ".gitignore");
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with('/')) continue;
    line.erase(0, 1);
    if (line.ends_with('/')) line.pop_back();
    names.push_back(line);
  }
  return names;
}

std::string lines(const Violations& violations) {
  std::string text;
  for (const std::string& violation : violations) text += violation + "\n";
  return text;
}

TEST(SourceTree, HasSourcesInItsLayers) { EXPECT_GT(source_files().size(), 30U); }

TEST(SourceTree, KeepsItsSourceRules) {
  Violations all;
  for (const std::string& path : source_files()) {
    const Violations found = check_source(path, read(root() / path));
    all.insert(all.end(), found.begin(), found.end());
  }
  EXPECT_TRUE(all.empty()) << lines(all);
}

TEST(SourceTree, KeepsItsRootTidy) {
  std::vector<std::string> entries;
  for (const fs::directory_entry& entry : fs::directory_iterator(root())) {
    entries.push_back(entry.path().filename().string());
  }
  const Violations found = check_root(entries, ignored_entries());
  EXPECT_TRUE(found.empty()) << lines(found);
}

// A comparison with a name would be a property of a strategy that its row lacks. Presets are data,
// and a key of JSON, ["pipeline"], is no strategy.
TEST(SourceTree, NamesStrategiesInTheirTableOnly) {
  const std::set<std::string> allowed = {"deploy/cli/names.cc", "bench/compare/presets.cc",
                                         "bench/compare/presets.h"};
  for (const std::string& path : source_files()) {
    if (path.starts_with("strategies/") || path.starts_with("tests/") || allowed.contains(path)) {
      continue;
    }
    const std::string text = read(root() / path);
    for (const StrategyRow& row : strategies()) {
      const std::string quoted = fmt::format("\"{}\"", row.name);
      for (auto at = text.find(quoted); at != std::string::npos; at = text.find(quoted, at + 1)) {
        EXPECT_TRUE(at > 0 && text[at - 1] == '[')
            << path << " names " << quoted << "; ask its row in strategies/strategy_row.h";
      }
    }
  }
}

// Returns the headers that deploy/cmake/InstalledLibrary.cmake installs.
std::set<std::string> installed_headers() {
  std::istringstream text(read(root() / "deploy/cmake/InstalledLibrary.cmake"));
  std::string word;
  while (text >> word && word != "set(SYNCOPATE_PUBLIC_HEADERS") continue;
  std::set<std::string> headers;
  for (bool is_last = false; !is_last && text >> word;) {
    is_last = word.ends_with(')');
    headers.insert(word.substr(0, word.size() - (is_last ? 1 : 0)));
  }
  return headers;
}

// Inserts a header and what it includes.
void insert_closure(const std::string& header, std::set<std::string>& closure) {
  if (!closure.insert(header).second) return;
  std::istringstream text(read(root() / header));
  constexpr std::string_view kInclude = "#include \"";
  for (std::string line; std::getline(text, line);) {
    if (!line.starts_with(kInclude)) continue;
    insert_closure(line.substr(kInclude.size(), line.rfind('"') - kInclude.size()), closure);
  }
}

TEST(InstalledHeaders, AreWhatProgramsIncludeAndWhatTheseHeadersInclude) {
  std::set<std::string> closure;
  for (const char* header : {"deploy/program.h", "models/base/errors.h", "models/base/random.h",
                             "models/zoo/zoo.h", "worker/input/dataset.h"}) {
    insert_closure(header, closure);
  }
  EXPECT_EQ(installed_headers(), closure);
}

TEST(SourceTree, HasAReadmeInEveryFolder) {
  for (const char* floor :
       {".", "models", "ps", "strategies", "worker", "deploy", "bench", "tests"}) {
    EXPECT_TRUE(fs::exists(root() / floor / "README.md")) << floor;
  }
}

}  // namespace
}  // namespace syncopate::architecture
