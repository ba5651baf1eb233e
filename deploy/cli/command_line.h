// The command line of `syncopate` as plain structs; nothing below deploy/ sees flags. Values are
// checked here where that is possible; the commands check what depends on the data.
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
#include "deploy/slurm/job_script.h"
#include "models/base/environment.h"
#include "ps/net/link.h"
#include "strategies/cluster/cluster_spec.h"
#include "worker/run/train_options.h"

namespace syncopate {

class FlagSet;

// `syncopate serve`: a parameter server that is started by itself.
struct ServeOptions {
  ClusterSpec cluster;  // its role is kServer
  std::string host;     // name or address for the workers; "": this host's name, or the cluster's
  int port = 0;         // of the data; 0: the system chooses
  int threads = 0;      // 0: by the CPUs
  std::filesystem::path snapshot_dir;
  double snapshot_every = 10.0;       // seconds
  double rendezvous_timeout = 300.0;  // seconds: workers on GPUs plan their network for minutes
  double peer_timeout = 0.0;          // seconds; 0: by the places of the tasks
  std::filesystem::path record;
  Link link;  // of the data
};

struct EvaluateOptions {
  std::filesystem::path checkpoint;
  std::string model = "mnist-cnn";
  std::string data = "digits";
  std::uint64_t seed = 1;  // of synthetic data
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
  int port_base = 0;  // 0: the port of the rendezvous
};

struct LaunchOptions {
  int workers = 1;
  int servers = 0;
  std::vector<std::string> role_arguments;   // of every role: "train" and its flags
  Environment::Variables environment;        // of every role: ours and those of --env
  std::vector<std::string> added_variables;  // the names of --env
  LaunchRules rules;
  std::filesystem::path checkpoint_dir;  // of train; empty: none
  std::filesystem::path record;          // of train; empty: none
  bool with_mpirun = false;
  bool bind_workers = true;
  std::vector<Join> joins;  // workers that start later than the others
};

// `syncopate doctor`: the training whose mistakes are looked for.
struct DoctorOptions {
  TrainOptions train;
  Environment environment;
};

// A text to print, for --help and --version.
struct TextOptions {
  std::string text;
};

using CommandOptions =
    std::variant<TrainOptions, ServeOptions, EvaluateOptions, InfoOptions, ClusterOptions,
                 LaunchOptions, SbatchOptions, DoctorOptions, TextOptions>;

// arguments: without the program's name. Throws UsageError and UnavailableError (a choice that this
// build does not have), each with a message of one line.
CommandOptions parse_command_line(std::span<const std::string> arguments,
                                  const Environment& environment);

// As parse_command_line, for the words behind the name of one command.
CommandOptions parse_train(std::span<const std::string> arguments, const Environment& environment);
CommandOptions parse_serve(std::span<const std::string> arguments, const Environment& environment);
CommandOptions parse_launch(std::span<const std::string> arguments, const Environment& environment);
CommandOptions parse_cluster(std::span<const std::string> arguments,
                             const Environment& environment);
CommandOptions parse_sbatch(std::span<const std::string> arguments);

// The options that several runs share, whose strategy and cluster the caller sets afterwards: what
// the flags mean together is not checked. Throws UsageError, also for --help.
TrainOptions parse_shared_train(std::span<const std::string> arguments);

// Begins the group "Model and data": --model, --data, --cache-dir, --seed.
void add_data_flags(FlagSet& flags, std::string& model, std::string& data,
                    std::filesystem::path& cache_dir, std::uint64_t& seed);

// $SYNCOPATE_CACHE_DIR, $XDG_CACHE_HOME/syncopate or ~/.cache/syncopate; a folder below the
// temporary one where none is set.
std::filesystem::path default_cache_dir(const Environment& environment);

}  // namespace syncopate
