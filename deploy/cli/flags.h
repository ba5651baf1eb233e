// What the commands' flag lists have in common: parsing with one clear line for what is unknown,
// and checks that name the flag, the value and what was expected. CLI11 stays in the .cc files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "deploy/cli/nearest_name.h"

namespace CLI {
class App;
}

namespace syncopate {

// --model, --data, --cache-dir, --seed.
void add_data_flags(CLI::App& app, std::string& model, std::string& data,
                    std::filesystem::path& cache_dir, std::uint64_t& seed);

using Names = std::vector<std::string_view>;

// Fills what the flags were bound to; returns the text of --help when that was asked for. Throws
// UsageError, and UnavailableError for one of `not_yet`, the flags that have no meaning so far.
std::optional<std::string> parse_flags(CLI::App& app, std::span<const std::string> arguments,
                                       const Names& not_yet = {});

// What to say behind the name of a flag that is none: "; did you mean '--model'? ... --help lists
// the flags".
std::string suggest_flag(std::string_view typed, const CLI::App& app);

// Each throws UsageError unless the value is good.
void require_at_least(std::string_view flag, std::int64_t value, std::int64_t least);
void require_between(std::string_view flag, std::int64_t value, std::int64_t least,
                     std::int64_t most);
void require_threads(std::string_view flag, int value);
// Throws UnavailableError for one of `not_yet`: a right name, but nothing stands behind it so far.
void require_name(std::string_view flag, const std::string& value, const Names& names,
                  const Names& not_yet = {});
// A path: a script's variable that was never set would quietly save nothing.
void require_not_empty(const CLI::App& app, const std::string& flag);
// A flag that the chosen name ignores is a misunderstanding.
void require_used(const CLI::App& app, std::string_view flag, bool used, std::string_view advice);

// The names of a table's rows.
template <typename Row>
Names names_of(std::span<const Row> rows) {
  Names names;
  for (const Row& row : rows) names.push_back(row.name);
  return names;
}

// "network: mlp, resnet20"
std::string help_of(std::string_view what, const Names& names);

}  // namespace syncopate
