#include "models/graph/network_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "models/base/errors.h"

namespace syncopate {
namespace {

using Json = nlohmann::ordered_json;

// Lists and objects in one another. A network has 4; nlohmann_json prints and copies a value by
// recursion, and a deep one would exhaust the stack.
constexpr int kDeepest = 8;

// Reads characters and counts their lines, so that a node's line is known when it begins.
class LineCounter {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  LineCounter(const char* at, int& line) : at_(at), line_(&line) {}
  reference operator*() const { return *at_; }
  LineCounter& operator++() {
    if (*at_ == '\n') ++*line_;
    ++at_;
    return *this;
  }
  LineCounter operator++(int) {
    LineCounter before = *this;
    ++*this;
    return before;
  }
  bool operator==(const LineCounter& other) const { return at_ == other.at_; }

 private:
  const char* at_;
  int* line_;
};

// Parses JSON and notes the line on which each node begins. Refuses a field that is given twice:
// nlohmann_json would keep the last.
class JsonReader {
 public:
  JsonReader(std::string_view text, const std::string& path) : text_(text), path_(path) {}

  std::vector<int> read() {
    Json json;
    const auto note = [this](int depth, Json::parse_event_t event, const Json& parsed) {
      note_event(depth, event, parsed);
      return true;
    };
    const char* const end = text_.data() + text_.size();
    try {
      json = Json::parse(LineCounter(text_.data(), line_), LineCounter(end, line_), note);
    } catch (const Json::exception& error) {
      refuse(line_, syntax_fault(error));
    }
    if (twice_line_ > 0) refuse(twice_line_, "'" + twice_ + "' is given twice");
    check_fields(json);
    if (json["nodes"].size() > kMostNodes) {
      refuse(lines_[kMostNodes], fmt::format("expected at most {} nodes", kMostNodes));
    }
    return std::move(lines_);
  }

 private:
  using Event = Json::parse_event_t;

  [[noreturn]] void refuse(int line, const std::string& what) const {
    throw UsageError(path_.empty() ? "the network's text: " + what
                                   : fmt::format("{}:{}: {}", path_, line, what));
  }

  void check_fields(const Json& json) const {
    if (!json.is_object()) refuse(1, "expected a JSON object {\"name\": ..., \"nodes\": [...]}");
    for (const auto& [key, value] : json.items()) {
      if (key != "name" && key != "nodes") {
        refuse(1, fmt::format("'{}' is no field of a network; its fields are name, nodes", key));
      }
    }
    const auto name = json.find("name");
    const auto is_control = [](char letter) {
      return static_cast<unsigned char>(letter) < ' ' || letter == '\x7f';
    };
    if (name == json.end() || !name->is_string() || name->get_ref<const std::string&>().empty() ||
        std::ranges::any_of(name->get_ref<const std::string&>(), is_control)) {
      refuse(1, fmt::format("'name' is {}; expected the network's name, a text without control "
                            "characters",
                            name == json.end() ? "missing" : name->dump()));
    }
    const auto nodes = json.find("nodes");
    if (nodes == json.end() || !nodes->is_array() || nodes->empty()) {
      refuse(1, fmt::format("'nodes' is {}; expected a list of nodes",
                            nodes == json.end() ? "missing"
                            : nodes->is_array() ? "empty"
                                                : "no list"));
    }
  }

  // depth: the number of objects and arrays around the event.
  void note_event(int depth, Event event, const Json& parsed) {
    if (depth > kDeepest) {
      refuse(line_, fmt::format("more than {} lists or objects in one another", kDeepest));
    }
    if (event == Event::key && (depth == 1 || depth == 3)) {
      const auto& key = parsed.get_ref<const std::string&>();
      if (!(depth == 1 ? fields_ : node_fields_).insert(key).second && twice_line_ == 0) {
        twice_ = key;
        twice_line_ = line_;
      }
      if (depth == 1) is_in_nodes_ = key == "nodes";
    }
    const bool begins =
        event == Event::object_start || event == Event::array_start || event == Event::value;
    if (depth != 2 || !begins || !is_in_nodes_) return;
    node_fields_.clear();
    lines_.push_back(line_);
  }

  // Returns what nlohmann_json says of a text that is no JSON, without its prefix.
  static std::string syntax_fault(const Json::exception& error) {
    constexpr std::size_t kMost = 200;
    const std::string text = error.what();
    const std::size_t overflow = text.find("number overflow");
    if (overflow != std::string::npos) return text.substr(overflow, kMost);  // of a double
    const std::size_t at = text.find("syntax error");
    return "no JSON: " + text.substr(at == std::string::npos ? 0 : at, kMost);
  }

  std::string_view text_;
  const std::string& path_;
  std::vector<int> lines_;
  int line_ = 1;
  bool is_in_nodes_ = false;
  std::set<std::string> fields_;
  std::set<std::string> node_fields_;
  std::string twice_;
  int twice_line_ = 0;
};

}  // namespace

std::vector<int> check_network_json(std::string_view text, const std::string& path) {
  return JsonReader(text, path).read();
}

}  // namespace syncopate
