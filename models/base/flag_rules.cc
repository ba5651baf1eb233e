#include "models/base/flag_rules.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace syncopate {
namespace {

struct ValueText {
  using Text = std::optional<std::string>;

  Text operator()(const bool* value) const { return *value ? Text("on") : std::nullopt; }
  Text operator()(const std::string* value) const {
    return value->empty() ? std::nullopt : Text(*value);
  }
  Text operator()(const std::filesystem::path* value) const {
    return value->empty() ? std::nullopt : Text(value->string());
  }
  Text operator()(const std::chrono::milliseconds* value) const {
    return fmt::format("{}", static_cast<double>(value->count()) / 1000.0);
  }
  Text operator()(const EnumTarget& target) const { return std::string(target.value); }
  Text operator()(const ScaledTarget& target) const {
    return fmt::format("{}", *target.value / target.unit);
  }
  Text operator()(const std::function<void(const std::string&)>& /*parse*/) const { return {}; }
  template <typename Number>
  Text operator()(const std::optional<Number>* value) const {
    return *value ? Text(fmt::format("{}", **value)) : std::nullopt;
  }
  template <typename Element>
  Text operator()(const std::vector<Element>* values) const {
    return values->empty() ? std::nullopt : Text(fmt::format("{}", fmt::join(*values, ",")));
  }
  // Returns the shortest text that reads back as this number.
  template <typename Number>
  Text operator()(const Number* value) const {
    return fmt::format("{}", *value);
  }
};

}  // namespace

std::optional<std::string> text_of(const FlagTarget& target) {
  return std::visit(ValueText{}, target);
}

}  // namespace syncopate
