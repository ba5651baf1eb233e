#include "deploy/cli/flags.h"

#include <sched.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>

#include "deploy/cli/config_file.h"
#include "models/base/affinity.h"
#include "models/base/errors.h"
#include "models/zoo/zoo.h"
#include "worker/input/dataset.h"

namespace syncopate {
namespace {

constexpr int kMostThreads = 1024;

bool contains(const Names& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

void add_data_flags(CLI::App& app, std::string& model, std::string& data,
                    std::filesystem::path& cache_dir, std::uint64_t& seed) {
  // Given twice, the last one counts, so that scripts can put their user's flags behind their own.
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  std::string kinds;
  for (const DatasetRow& row : datasets()) {
    kinds += (kinds.empty() ? "" : " | ") + std::string(row.pattern);
  }
  const std::string group = "What";
  app.add_option("--model", model, help_of("network", names_of(networks())))
      ->capture_default_str()
      ->group(group);
  app.add_option("--data", data, "samples: " + kinds)->capture_default_str()->group(group);
  app.add_option("--cache-dir", cache_dir,
                 "where rendered samples, and what was measured of a GPU, are kept between runs")
      ->capture_default_str()
      ->group(group);
  app.add_option("--seed", seed,
                 "first values, order, augmentation and synthetic data follow from it")
      ->capture_default_str()
      ->group(group)
      ->check([](const std::string& text) {
        // Without this a minus sign wraps around, and what is too large becomes the largest number.
        std::uint64_t number = 0;
        const char* end = text.data() + text.size();
        const auto [stop, error] = std::from_chars(text.data(), end, number);
        const bool whole = error == std::errc() && stop == end;
        return whole ? std::string() : "expected a whole number from 0 to 2^64 - 1";
      });
}

std::optional<std::string> parse_flags(CLI::App& app, std::span<const std::string> arguments,
                                       const Names& not_yet) {
  app.allow_extras();  // so that we can name the flag that was meant
  app.config_formatter(make_config_file(app));
  try {
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::CallForHelp&) {
    return app.help();
  } catch (const CLI::ConfigError& error) {
    throw UsageError("--config: " + std::string(error.what()) +
                     "; expected lines NAME = VALUE, the name a flag without its dashes (" +
                     app.get_name() + " --help lists them)");
  } catch (const CLI::ParseError& error) {
    std::string line = error.what();
    std::replace(line.begin(), line.end(), '\n', ' ');
    throw UsageError(line + " (" + app.get_name() + " --help lists the flags)");
  }
  const std::vector<std::string> unknown = app.remaining();
  if (unknown.empty()) return std::nullopt;
  const std::string typed = unknown.front().substr(0, unknown.front().find('='));
  if (contains(not_yet, typed)) {
    throw UnavailableError(typed + ": not in this version (" + app.get_name() +
                           " --help lists the flags that are)");
  }
  throw UsageError((typed.rfind('-', 0) == 0 ? "unknown flag " : "unexpected argument ") + typed +
                   suggest_flag(typed, app));
}

std::string suggest_flag(std::string_view typed, const CLI::App& app) {
  std::vector<std::string> flags;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) flags.push_back("--" + name);
  }
  const Names names(flags.begin(), flags.end());
  // Not all of them: there are dozens.
  const auto meant = nearest_name(typed, names);
  return (meant ? "; did you mean '" + std::string(*meant) + "'? " : "; ") + app.get_name() +
         " --help lists the flags";
}

void require_at_least(std::string_view flag, std::int64_t value, std::int64_t least) {
  if (value >= least) return;
  throw UsageError(std::string(flag) + " " + std::to_string(value) +
                   ": expected a whole number, at least " + std::to_string(least));
}

void require_between(std::string_view flag, std::int64_t value, std::int64_t least,
                     std::int64_t most) {
  if (value >= least && value <= most) return;
  throw UsageError(std::string(flag) + " " + std::to_string(value) +
                   ": expected a whole number from " + std::to_string(least) + " to " +
                   std::to_string(most));
}

void require_threads(std::string_view flag, int value) {
  require_between(flag, value, 1, kMostThreads);
}

void require_name(std::string_view flag, const std::string& value, const Names& names,
                  const Names& not_yet) {
  if (contains(names, value)) return;
  if (contains(not_yet, value)) {
    throw UnavailableError(
        help_of(std::string(flag) + " " + value + ": not in this version; choose one of", names));
  }
  throw UsageError(std::string(flag) + " " + value + ": no such name" + suggest(value, names));
}

void require_not_empty(const CLI::App& app, const std::string& flag) {
  if (app.count(flag) == 0 || !app.get_option(flag)->as<std::string>().empty()) return;
  throw UsageError(flag + " is empty: expected a path");
}

void require_used(const CLI::App& app, std::string_view flag, bool used, std::string_view advice) {
  if (used || app.count(std::string(flag)) == 0) return;
  throw UsageError(std::string(flag) + " has no effect here: " + std::string(advice));
}

std::string help_of(std::string_view what, const Names& names) {
  std::string text = std::string(what) + ":";
  for (const std::string_view name : names) {
    text += (text.back() == ':' ? " " : ", ") + std::string(name);
  }
  return text;
}

}  // namespace syncopate
