// Parses the command line of `syncopate` into plain structs, so that the layers below deploy/ do
// not depend on flags. Values are checked here as far as possible; the commands check what depends
// on the data.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "deploy/cli/flag_set.h"
#include "deploy/launch/launch_rules.h"
#include "deploy/slurm/job_script.h"
#include "models/base/environment.h"
#include "ps/net/slow_link.h"
#include "strategies/cluster/cluster_spec.h"
#include "worker/input/dataset.h"
#include "worker/run/train_options.h"

namespace syncopate {

// The options of `syncopate serve`, which runs one parameter server.
struct ServeOptions {
  ClusterSpec cluster;  // the cluster, with cluster.role kServer and the index of this server
  // The host name or address that workers connect to. If it is "", workers connect to the host
  // that the cluster lists for this server or, if the cluster has no list of servers, to this host.
  std::string host;
  int port = 0;     // the port for data; 0 lets the system choose
  int threads = 0;  // the number of update threads; 0 derives it from the CPUs
  std::filesystem::path snapshot_dir;
  double snapshot_every = 10.0;  // seconds between two snapshots
  // Rendezvous timeout in seconds. The default is long, because workers on GPUs take minutes to
  // compile their network before they come to the rendezvous.
  double rendezvous_timeout = 300.0;
  // Peer timeout in seconds; 0: 5 s if all tasks are on one machine, else 15 s.
  double peer_timeout = 0.0;
  std::filesystem::path record;
  Link link;  // a simulated slow link for data
};

// The options of `syncopate evaluate`. The checkpoint has the network, the data set and the seed. A
// flag that contradicts the checkpoint is an error.
struct EvaluateOptions {
  std::filesystem::path checkpoint;
  std::string model;                  // empty: the model in the checkpoint
  NetworkFlags network;               // empty: the flags in the checkpoint
  std::string data;                   // empty: the data set in the checkpoint
  std::optional<std::uint64_t> seed;  // seed of synthetic data; nullopt: the seed in the checkpoint
  int lanes = 1;
  int input_threads = 1;
  // Whether the value of --input-threads is auto; nullopt if the flag is not given.
  std::optional<bool> tunes_input_threads;
  std::filesystem::path cache_dir;
  ImageOptions image;                 // without a size: the size in the checkpoint
  std::filesystem::path tensorboard;  // empty: no picture of the confusion matrix is written
  bool json = false;

  // Returns whether the number of reader threads is tuned automatically. Without --input-threads,
  // the number is tuned if the samples are encoded, as in train. chosen_data: the value of --data.
  bool tunes_readers(std::string_view chosen_data) const {
    return tunes_input_threads.value_or(is_encoded(chosen_data));
  }
};

struct InfoOptions {
  bool json = false;
};

// The options of `syncopate export`, which writes a checkpoint's weights for other programs.
struct ExportOptions {
  std::filesystem::path checkpoint;
  std::filesystem::path out;
  bool onnx = false;  // true: write an ONNX file, which has the network and its weights
};

// The options of `syncopate predict`.
struct PredictOptions {
  std::filesystem::path checkpoint;
  std::vector<std::string> inputs;  // pictures, or .npy files of samples
  int lanes = 1;
  bool apply_exif = false;
  bool json = false;
  std::filesystem::path maps_dir;  // folder of label maps as PNG files; empty: they are not written
};

// The options of `syncopate network`, which prints a network.
struct NetworkOptions {
  std::string model = "mnist-cnn";
  NetworkFlags network;
  std::string data = "digits";
  std::uint64_t seed = 1;
  std::filesystem::path cache_dir;
  ImageOptions image;
  bool json = false;
};

// The options of `syncopate convert`, which converts an ONNX file to a network file and a file of
// weights, or a data set to another format.
struct ConvertOptions {
  std::string format = "network";
  std::string source;             // the ONNX file, or the data set
  std::filesystem::path out;      // the network file, or the folder
  std::filesystem::path weights;  // the file of weights; empty for a data set
  std::filesystem::path cache_dir;
  ImageOptions image;  // without a size: pictures are copied
};

struct ClusterOptions {
  ClusterSpec cluster;
  bool as_tf_config = false;
  int port_base = 0;  // the first port; 0 uses the port of the rendezvous
};

struct LaunchOptions {
  int workers = 1;
  int servers = 0;
  // The program that the workers run, if they run a program with its own workload; empty: this
  // program.
  std::filesystem::path program;
  // The arguments of the workers: "train" or "doctor" and its flags, or the flags of `program`.
  std::vector<std::string> role_arguments;
  // The arguments of the servers, which run as `syncopate` even if the workers run `program`. These
  // are "train" and the flags of role_arguments that train also has. Empty if `program` is empty;
  // the servers then get role_arguments.
  std::vector<std::string> server_arguments;
  Environment::Variables environment;  // the environment of every role: the launcher's and --env
  std::vector<std::string> added_variables;  // the names that --env sets
  LaunchRules rules;
  std::filesystem::path checkpoint_dir;  // the folder given to train; empty if not given
  std::filesystem::path record;          // the file given to train; empty if not given
  bool with_mpirun = false;
  bool bind_workers = true;
  std::vector<Join> joins;  // the workers that start later than the others
  std::string note;         // a line about the flags that is shown at the start; "" for none

  // False if the roles only check the job, as doctor does.
  bool trains() const { return !program.empty() || role_arguments.front() == "train"; }
};

// The options of `syncopate doctor`, which checks a training job for mistakes.
struct DoctorOptions {
  TrainOptions train;
  Environment environment;
};

// A text for the program to print in response to --help, to --version or to a missing command.
struct TextOptions {
  std::string text;
  bool is_error = false;  // true: print to standard error and return exit code 2
};

using CommandOptions =
    std::variant<TrainOptions, ServeOptions, EvaluateOptions, ExportOptions, PredictOptions,
                 InfoOptions, NetworkOptions, ConvertOptions, ClusterOptions, LaunchOptions,
                 SbatchOptions, DoctorOptions, TextOptions>;

// A program with its own network and data (deploy/program.h). It accepts the flags of train, except
// flags that choose or change the network and the data.
struct OwnWorkload {
  std::string program;             // name of the program, for --help and messages
  bool takes_other_flags = false;  // true: the program parses flags that train does not have
};

// Parses the arguments, which do not include the program's name. Throws UsageError for a wrong
// argument, and UnavailableError for a value that this build does not support. Each error message
// is one line.
CommandOptions parse_command_line(std::span<const std::string> arguments,
                                  const Environment& environment);

// These functions parse the arguments after the name of one command. They throw the same errors as
// parse_command_line(). own: the calling program if it has its own workload, else nullopt.
CommandOptions parse_train(std::span<const std::string> arguments, const Environment& environment,
                           const std::optional<OwnWorkload>& own = std::nullopt);
CommandOptions parse_serve(std::span<const std::string> arguments, const Environment& environment);
CommandOptions parse_launch(std::span<const std::string> arguments, const Environment& environment);
CommandOptions parse_cluster(std::span<const std::string> arguments,
                             const Environment& environment);
CommandOptions parse_sbatch(std::span<const std::string> arguments);
CommandOptions parse_convert(std::span<const std::string> arguments,
                             const Environment& environment);

// Returns the flags of train, for a command that takes them after `--`.
std::vector<RestFlag> train_rest_flags();

// Parses flags of train that several runs share. The caller sets the strategy and the cluster
// afterwards, so the combination of the flags is not checked. Throws UsageError, also for --help.
TrainOptions parse_shared_train(std::span<const std::string> arguments);

// Adds the flags `names` of train to another command.
void add_flags_of_train(FlagSet& flags, TrainOptions& options,
                        std::initializer_list<std::string_view> names);
// Adds the flags of the group "Model and data", without flags that only training needs. For flags
// that a checkpoint records, --help shows `default_text` as the default, or the default of train if
// `default_text` is "".
void add_data_flags(FlagSet& flags, TrainOptions& options, const std::string& default_text = "");
// Adds the flags that say how pictures and records become samples.
void add_image_flags(FlagSet& flags, TrainOptions& options);

// Throws UsageError unless `text`, a value of --data, begins with the name of a data set. The rest
// of the text is checked when the data are opened.
void require_data_name(const std::string& text);
// Sets whether the number of input threads and the prefetch are tuned: both are tuned if the
// samples of `data`, a value of --data, are encoded. Does not change the setting of the number that
// --input-threads or --prefetch gives.
void tune_encoded(const FlagSet& flags, std::string_view data, Autotune& autotune);

// Returns $SYNCOPATE_CACHE_DIR if this variable is set, else $XDG_CACHE_HOME/syncopate, else
// $HOME/.cache/syncopate. If none of the variables is set, returns a folder below the temporary
// folder.
std::filesystem::path default_cache_dir(const Environment& environment);

// Returns the default folder for decoded pictures, which is on the machine's own disk.
std::filesystem::path local_cache_dir(const Environment& environment);

}  // namespace syncopate
