// The command line as plain structs. Here end the flags: nothing below deploy/ sees them. What a
// value means is checked here where it can be; what depends on the data is checked by the command.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "deploy/launch/join.h"
#include "deploy/launch/launch_rules.h"
#include "deploy/slurm/filled_script.h"
#include "models/base/environment.h"
#include "ps/net/link.h"
#include "strategies/cluster/cluster_spec.h"
#include "worker/run/train_options.h"

namespace syncopate {

// A parameter server that is started as such.
struct ServeOptions {
  ClusterSpec cluster;  // in which it is a server
  std::string host;     // under which it is reached; "": its own name, or as the cluster says
  int port = 0;         // of its data; 0: the system chooses
  int threads = 0;      // 0: by the CPUs
  std::filesystem::path snapshot_dir;
  double snapshot_every = 10.0;       // seconds
  double rendezvous_timeout = 300.0;  // seconds: workers may have GPUs, which plan for long
  double peer_timeout = 0.0;          // seconds; 0: by where the tasks are
  std::filesystem::path record;
  Link link;  // of its data
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

struct ClusterOptions {
  ClusterSpec cluster;
  bool as_tf_config = false;
  int port_base = 0;  // 0: the source's own
};

struct LaunchOptions {
  int workers = 1;
  int servers = 0;
  std::vector<std::string> role_arguments;   // of every role: "train" and its flags
  Environment::Variables environment;        // of every role: ours and what --env adds
  std::vector<std::string> added_variables;  // their names
  LaunchRules rules;
  std::filesystem::path checkpoint_dir;  // that train was given; empty: none
  std::filesystem::path record;          // ditto
  bool with_mpirun = false;
  bool bind_workers = true;
  std::vector<Join> joins;  // workers that come later than the others
};

// What a training with these flags would run into.
struct DoctorOptions {
  TrainOptions train;
  Environment environment;
};

// Asked for: --help, --version.
struct TextOptions {
  std::string text;
};

using CommandOptions =
    std::variant<TrainOptions, ServeOptions, EvaluateOptions, InfoOptions, ClusterOptions,
                 LaunchOptions, SbatchOptions, DoctorOptions, TextOptions>;

// arguments: without the program's name. Throws UsageError (unknown command, flag or name, with the
// right ones; a value out of range), UnavailableError (a choice that this build does not have),
// each one line.
CommandOptions parse_command_line(std::span<const std::string> arguments,
                                  const Environment& environment);

// $SYNCOPATE_CACHE_DIR, $XDG_CACHE_HOME/syncopate or ~/.cache/syncopate; a folder below the
// temporary one where none is set.
std::filesystem::path default_cache_dir(const Environment& environment);

}  // namespace syncopate
