#include "deploy/cli/config_file.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <vector>

#include "deploy/cli/flags.h"
#include "models/base/errors.h"

namespace syncopate {
namespace {

bool says_false(const CLI::ConfigItem& item) {
  if (item.inputs.size() != 1) return false;
  try {
    return CLI::detail::to_flag_value(item.inputs.front()) < 0;
  } catch (const std::invalid_argument&) {
    return false;  // CLI11 says so itself
  }
}

class ConfigFile final : public CLI::ConfigTOML {
 public:
  explicit ConfigFile(const CLI::App& app) : app_(app) {}

  std::vector<CLI::ConfigItem> from_config(std::istream& input) const override {
    std::vector<CLI::ConfigItem> lines = CLI::ConfigTOML::from_config(input);
    std::erase_if(lines, [&](const CLI::ConfigItem& item) { return !counts(item); });
    return lines;
  }

 private:
  bool counts(const CLI::ConfigItem& item) const {
    if (!item.parents.empty()) {
      throw UsageError("--config: section [" + item.parents.front() +
                       "]: expected lines NAME = VALUE and no sections");
    }
    const CLI::Option* const option = app_.get_option_no_throw("--" + item.name);
    if (option == nullptr) {
      throw UsageError("--config: " + item.name + ": no such flag" +
                       suggest_flag("--" + item.name, app_));
    }
    const bool is_flag = option->get_expected_min() == 0;
    if (is_flag && says_false(item)) return false;
    return std::ranges::none_of(option->get_excludes(),
                                [](const CLI::Option* other) { return other->count() > 0; });
  }

  const CLI::App& app_;
};

}  // namespace

std::shared_ptr<CLI::Config> make_config_file(const CLI::App& app) {
  return std::make_shared<ConfigFile>(app);
}

}  // namespace syncopate
