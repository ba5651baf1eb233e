#include "bench/compare/report/wording.h"

#include <map>
#include <optional>
#include <sstream>

#include "bench/compare/report/text.h"

namespace syncopate::bench {
namespace {

using Fields = std::map<std::string, std::string>;

// "worker=7,factor=4".
Fields fields_of(const std::string& value) {
  Fields fields;
  std::istringstream in(value);
  for (std::string field; std::getline(in, field, ',');) {
    const std::size_t equals = field.find('=');
    if (equals != std::string::npos) fields[field.substr(0, equals)] = field.substr(equals + 1);
  }
  return fields;
}

// Nothing where a field is missing or the flag is another one.
std::optional<std::string> words_of(const std::string& flag, const std::string& value) {
  if (flag == "--service-time") return value + " service times";
  if (flag == "--link-delay") return "links delayed by " + value;
  if (flag == "--link-rate") return "links of " + value;
  const Fields fields = fields_of(value);
  const auto has = [&](const char* name) { return fields.count(name) == 1; };
  if (!has("worker")) return std::nullopt;
  const std::string worker = "worker " + fields.at("worker");
  if (flag == "--slow" && has("factor")) return worker + " slowed " + fields.at("factor") + "x";
  if (!has("at")) return std::nullopt;
  if (flag == "--pause" && has("for")) {
    return worker + " paused for " + fields.at("for") + " at " + fields.at("at");
  }
  if (flag == "--join") return worker + " joining at " + fields.at("at");
  if (flag != "--kill") return std::nullopt;
  const std::string killed = worker + " killed at " + fields.at("at");
  return has("restart") ? killed + " and started again " + fields.at("restart") + " later" : killed;
}

}  // namespace

std::string trouble_words(const std::string& trouble) {
  std::istringstream in(trouble);
  std::vector<std::string> said;
  for (std::string flag, value; in >> flag;) {
    if (!(in >> value)) return trouble;
    const auto words = words_of(flag, value);
    if (!words) return trouble;
    said.push_back(*words);
  }
  return listed(said);
}

std::string named(const VariantSummary& row) {
  const bool is_one_word = row.name.find_first_of(" ,") == std::string::npos;
  return is_one_word ? row.name : "\"" + row.name + "\"";
}

std::string accuracy_of(const VariantSummary& row) {
  return decimal_text(100.0 * row.accuracy->mean, 2) + " %";
}

std::string listed(const std::vector<std::string>& words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) text += i + 1 == words.size() ? " and " : ", ";
    text += words[i];
  }
  return text;
}

}  // namespace syncopate::bench
