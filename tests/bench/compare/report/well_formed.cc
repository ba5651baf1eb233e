#include "tests/bench/compare/report/well_formed.h"

#include <regex>
#include <vector>

namespace syncopate::bench {
namespace {

// What stands between tags, or between the quotes of an attribute.
bool is_harmless(const std::string& text) {
  static const std::regex kEntity("&(lt|gt|amp|quot|#[0-9]+);");
  return std::regex_replace(text, kEntity, "").find_first_of("&<>") == std::string::npos;
}

bool are_attributes(const std::string& text) {
  static const std::regex kAttributes("(\\s+[A-Za-z][A-Za-z0-9-]*=\"[^\"<]*\")*\\s*");
  return std::regex_match(text, kAttributes);
}

}  // namespace

std::string flaw_in_xml(std::string_view text) {
  static const std::regex kTag("^(/?)([A-Za-z][A-Za-z0-9]*)([^]*?)(/?)$");
  std::vector<std::string> open;
  const auto near = [&](std::size_t at) { return " near: " + std::string(text.substr(at, 80)); };
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t begin = std::min(text.find('<', at), text.size());
    const bool is_css = !open.empty() && open.back() == "style";
    const std::string between(text.substr(at, begin - at));
    if (!is_css && !is_harmless(between)) return "unescaped text" + near(at);
    if (begin == text.size()) break;
    const std::size_t end = text.find('>', begin);
    if (end == std::string_view::npos) return "a tag without end" + near(begin);
    const std::string inside(text.substr(begin + 1, end - begin - 1));
    at = end + 1;
    if (inside == "!DOCTYPE html") continue;
    std::smatch tag;
    if (!std::regex_match(inside, tag, kTag)) return "no tag" + near(begin);
    if (!are_attributes(tag[3])) return "bad attributes" + near(begin);
    if (tag[1].length() > 0) {
      if (open.empty() || open.back() != tag[2]) return "closes what is not open" + near(begin);
      open.pop_back();
    } else if (tag[4].length() == 0) {
      open.push_back(tag[2]);
    }
  }
  return open.empty() ? "" : "never closed: " + open.back();
}

}  // namespace syncopate::bench
