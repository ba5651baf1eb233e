// The command line as plain structs. Here end the flags: nothing below deploy/ sees them. What a
// value means is checked here where it can be; what depends on the data is checked by the command.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <variant>

#include "models/base/environment.h"
#include "models/optim/schedule.h"
#include "strategies/strategy.h"
#include "worker/input/batch_source.h"
#include "worker/train_loop.h"

namespace syncopate {

struct TrainOptions {
  std::string model = "mnist-cnn";
  std::string data = "digits";
  StrategyOptions strategy;  // its seed is everybody's
  InputOptions input;        // batch size and seed are the strategy's
  ScheduleOptions schedule;  // total_epochs: known once the data is
  TrainLoopOptions loop;
  bool resume = false;
  bool deterministic = false;
  bool show_progress = true;
  std::filesystem::path init_from;  // empty: the seed's first values
  std::filesystem::path metrics;    // empty: none
  std::filesystem::path cache_dir;
};

struct EvaluateOptions {
  std::filesystem::path checkpoint;
  std::string model = "mnist-cnn";
  std::string data = "digits";
  std::uint64_t seed = 1;  // synthetic data only
  int lanes = 1;
  int input_threads = 1;
  std::filesystem::path cache_dir;
  bool json = false;
};

struct InfoOptions {
  bool json = false;
};

// Asked for: --help, --version.
struct TextOptions {
  std::string text;
};

using CommandOptions = std::variant<TrainOptions, EvaluateOptions, InfoOptions, TextOptions>;

// arguments: without the program's name. Throws UsageError (unknown command, flag or name, with the
// right ones; a value out of range), UnavailableError (a choice that this build does not have),
// each one line.
CommandOptions parse_command_line(std::span<const std::string> arguments,
                                  const Environment& environment);

// $SYNCOPATE_CACHE_DIR, $XDG_CACHE_HOME/syncopate or ~/.cache/syncopate; a folder below the
// temporary one where none is set.
std::filesystem::path default_cache_dir(const Environment& environment);

}  // namespace syncopate
