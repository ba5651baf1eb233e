#include "worker/input/record/json_text.h"

#include <fmt/format.h>

#include <cerrno>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "models/base/errors.h"
#include "models/base/parse_number.h"

namespace syncopate {
namespace {

// Returns what is wrong, without the library's own words. Source: the list of its exceptions,
// json.nlohmann.me/home/exceptions.
std::string reason_of(const nlohmann::json::exception& error) {
  constexpr int kKeyNotFound = 403;  // "[...] key 'splits' not found"
  const std::string text = error.what();
  const std::size_t begin = text.find('\'');
  const std::size_t end = text.rfind('\'');
  if (error.id == kKeyNotFound && begin < end) {
    return fmt::format("it has no {}", text.substr(begin + 1, end - begin - 1));
  }
  return "a value is of another type than expected";
}

}  // namespace

void read_json(const std::filesystem::path& path, std::string_view writer,
               const std::function<void(const nlohmann::json&)>& read) {
  std::ifstream file(path);
  if (!file) {
    throw FileError(describe_errno("open", path.string(), errno) + "; let this user read the file");
  }
  try {
    read(nlohmann::json::parse(file));
  } catch (const nlohmann::json::parse_error& error) {
    throw FileError(fmt::format("{}: no JSON, from byte {} on; fetch the file again", path.string(),
                                error.byte));
  } catch (const nlohmann::json::exception& error) {
    throw FileError(fmt::format("{}: not as {} writes it: {}; fetch the file again", path.string(),
                                writer, reason_of(error)));
  }
}

std::int64_t count_of(const nlohmann::json& value, std::int64_t most, std::string_view what) {
  const std::string text = value.is_number_integer() ? std::to_string(value.get<std::int64_t>())
                                                     : value.get<std::string>();
  const auto number = parse_number<std::int64_t>(text);
  if (number && *number >= 0 && *number <= most) return *number;
  throw FileError(
      fmt::format("{} is \"{}\"; expected a whole number from 0 to {}; fetch the file again", what,
                  text, most));
}

}  // namespace syncopate
