// --config: a file of flags, which the command line outranks.
#pragma once

#include <memory>

namespace CLI {
class App;
class Config;
}  // namespace CLI

namespace syncopate {

// How CLI11 reads the file of `app`, which must outlive it: once it has parsed the command line.
// Lines for what the command line excludes are passed over, as are flags that are said to be false.
// Reading throws UsageError for a name that is no flag, with the one that was meant.
std::shared_ptr<CLI::Config> make_config_file(const CLI::App& app);

}  // namespace syncopate
