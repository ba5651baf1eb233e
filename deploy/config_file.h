// --config: a file of flags, which the command line outranks.
#pragma once

#include <CLI/CLI.hpp>
#include <vector>

namespace syncopate {

// How CLI11 reads the file of `app`, whose command line it has parsed by then. Lines for what the
// command line excludes are passed over, as are flags that are said to be false. The app must
// outlive it.
class ConfigFile final : public CLI::ConfigTOML {
 public:
  explicit ConfigFile(const CLI::App& app) : app_(app) {}

  // Throws UsageError for a name that is no flag.
  std::vector<CLI::ConfigItem> from_config(std::istream& input) const override;

 private:
  bool counts(const CLI::ConfigItem& item) const;

  const CLI::App& app_;
};

}  // namespace syncopate
