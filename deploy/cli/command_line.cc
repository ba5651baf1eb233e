#include "deploy/cli/command_line.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <system_error>
#include <utility>

#include "deploy/cli/flag_set.h"
#include "deploy/cli/names.h"
#include "models/base/errors.h"
#include "models/graph/operation_row.h"
#include "models/zoo/zoo.h"
#include "worker/run/exit_codes.h"
#include "worker/run/flags/train_flag.h"
#include "worker/run/run_sizes.h"

namespace syncopate {
namespace {

constexpr double kMostEvaluateThreads = 1024;
CommandOptions parse_evaluate(std::span<const std::string> arguments,
                              const Environment& environment) {
  EvaluateOptions options;
  options.lanes = default_lanes();
  FlagSet flags("syncopate evaluate",
                "Computes the loss and the metrics of a checkpoint on the test split of its data "
                "set. Every sample counts exactly once.");
  flags.begin_group("Checkpoints and output");
  flags.add("--checkpoint", &options.checkpoint,
            "checkpoint that `syncopate train` wrote; for a folder, its newest checkpoint is used",
            {.value = "FILE", .required = true});
  flags.add("--tensorboard", &options.tensorboard,
            "folder for TensorBoard; a picture of the confusion matrix is written there",
            {.value = "DIR", .default_text = "none"});
  flags.add("--json", &options.json, "print one JSON object in place of text");
  TrainOptions run;  // takes what the checkpoint records
  run.model.clear();
  run.data.clear();
  run.cache_dir = default_cache_dir(environment);
  add_data_flags(flags, run, "the value in the checkpoint");
  const TrainFlag& threads = *find_train_flag("--input-threads");
  flags.add(threads.name, threads.field(run),
            "number of threads that read samples; auto: as many as the network needs, at most one "
            "per CPU",
            threads.rules);
  flags.begin_group("Strategy and devices");
  flags.add("--threads", &options.lanes, "number of compute threads",
            {.least = 1, .most = kMostEvaluateThreads});
  if (const auto help = flags.parse(arguments)) return TextOptions{*help};
  if (flags.has("--data")) require_data_name(run.data);
  options.model = run.model;
  options.network = run.network;
  options.data = run.data;
  options.cache_dir = run.cache_dir;
  options.image = run.image;
  options.input_threads = run.input.threads;
  if (flags.has("--seed")) options.seed = run.strategy.seed;
  if (flags.has("--input-threads")) options.tunes_input_threads = run.input.autotune.threads;
  options.image.cache_dir =
      flags.has("--cache-dir") ? options.cache_dir : local_cache_dir(environment);
  return options;
}

std::string network_file_help() {
  return "A network file is JSON: {\"name\": NAME, \"nodes\": [NODE, ...]}. A node is {\"op\": "
         "OPERATION, ...}.\n"
         "A node reads the node before it, or the nodes named in \"inputs\": [NAME, ...].\n"
         "A node needs a \"name\" if another node lists it or if it has parameters.\n"
         "Operations, with their fields and defaults:\n\n" +
         describe_operations() +
         "\nExamples:\n"
         "  syncopate network --model mnist-cnn --data digits --json > net.json\n"
         "  syncopate train --model file:net.json --data digits";
}

CommandOptions parse_network(std::span<const std::string> arguments,
                             const Environment& environment) {
  NetworkOptions options;
  FlagSet flags(
      "syncopate network",
      "Prints a network: for each layer a line with its output shape and its numbers of parameters "
      "and of multiply-adds per sample, then the memory that a training step takes.",
      network_file_help());
  TrainOptions run;
  run.cache_dir = default_cache_dir(environment);
  add_data_flags(flags, run);
  flags.begin_group("Checkpoints and output");
  flags.add("--json", &options.json,
            "print the network in the format of --model file:NET.json, in place of the table");
  if (const auto help = flags.parse(arguments)) return TextOptions{*help};
  if (flags.has("--data")) require_data_name(run.data);
  options.model = run.model;
  options.network = run.network;
  options.data = run.data;
  options.seed = run.strategy.seed;
  options.cache_dir = run.cache_dir;
  options.image = run.image;
  options.image.cache_dir =
      flags.has("--cache-dir") ? options.cache_dir : local_cache_dir(environment);
  return options;
}

CommandOptions parse_export(std::span<const std::string> arguments) {
  ExportOptions options;
  FlagSet flags(
      "syncopate export",
      "Writes the weights and running statistics of a checkpoint, without the state of the "
      "optimizer, to a safetensors file with PyTorch's names. If the checkpoint was trained with "
      "--ema, the moving average of the weights is written. With --onnx, an ONNX file of the whole "
      "network is written instead, for example for onnxruntime.",
      "In Python:\n"
      "  network.load_state_dict(safetensors.torch.load_file(\"OUT\"), strict=True)\n"
      "  onnxruntime.InferenceSession(\"OUT\").run([\"logits\"], {\"x\": samples})    with --onnx\n"
      "The input of the network is [N, C, H, W] in float32, as in PyTorch. The second line of the\n"
      "output of `syncopate export` says how to normalise the input. An ONNX file contains this\n"
      "line and the names of the classes as metadata.");
  flags.add("--checkpoint", &options.checkpoint,
            "checkpoint that `syncopate train` wrote; for a folder, its newest checkpoint is used",
            {.value = "FILE", .required = true});
  flags.add("OUT", &options.out, "file to write, such as weights.safetensors", {.required = true});
  flags.add("--onnx", &options.onnx,
            "write the whole network as an ONNX file (opset 17) for inference");
  if (const auto help = flags.parse(arguments)) return TextOptions{*help};
  return options;
}

CommandOptions parse_predict(std::span<const std::string> arguments) {
  PredictOptions options;
  options.lanes = default_lanes();
  FlagSet flags(
      "syncopate predict",
      "Prints the most probable class of each sample and the probability of this class. For a "
      "network that gives label maps, prints each class's share of the pixels.",
      "Examples:\n"
      "  syncopate predict --checkpoint runs/a/checkpoint-000000000938.safetensors *.jpg\n"
      "  syncopate predict --checkpoint FILE --json x_test.npy\n"
      "  syncopate predict --checkpoint FILE new.csv\n"
      "  syncopate predict --checkpoint FILE --maps maps *.png");
  flags.add("--checkpoint", &options.checkpoint,
            "checkpoint that `syncopate train` wrote; for a folder, its newest checkpoint is used",
            {.value = "FILE", .required = true});
  flags.add(
      "INPUT", &options.inputs,
      "pictures (JPEG, PNG), arrays (.npy) of one sample or of several samples ([N, ...]), or "
      "tables (.csv, .csv.gz). Pictures are resized as in training. Arrays need the type and "
      "layout of the training samples ([H, W, C] or [F]). Tables need the columns of the training "
      "table; only the labels may be missing. All samples are normalised as in training",
      {.several_words = true, .required = true});
  flags.add("--exif", &options.apply_exif,
            "rotate or mirror each picture as its EXIF orientation requires. Without this flag, "
            "this is done only if the checkpoint was trained with --exif");
  flags.add("--threads", &options.lanes, "number of compute threads",
            {.least = 1, .most = kMostEvaluateThreads});
  flags.add("--json", &options.json,
            "print one JSON object per sample in place of text. The object contains the "
            "probabilities of all classes; for targets that are numbers, the predicted numbers; "
            "for label maps, each class's share of the pixels");
  flags.add("--maps", &options.maps_dir,
            "folder for the label maps: one PNG file per sample, in the size that the network "
            "computes, with one colour per class",
            {.value = "DIR"});
  if (const auto help = flags.parse(arguments)) return TextOptions{*help};
  return options;
}

CommandOptions parse_info(std::span<const std::string> arguments) {
  InfoOptions options;
  FlagSet flags("syncopate info",
                "Lists the strategies, networks, data sets and other parts of this build, and the "
                "libraries that the program found.");
  flags.add("--json", &options.json, "print one JSON object in place of text");
  if (const auto help = flags.parse(arguments)) return TextOptions{*help};
  return options;
}

CommandOptions parse_doctor(std::span<const std::string> arguments,
                            const Environment& environment) {
  const auto asks_for_help = [](const std::string& word) {
    return word == "--help" || word == "-h";
  };
  if (std::ranges::any_of(arguments, asks_for_help)) {
    return TextOptions{
        "Checks this machine, or all tasks of a job, for common mistakes; does not train. Start "
        "it\n"
        "in the same way and with the same flags as `syncopate train`:\n\n"
        "Usage: syncopate doctor [FLAGS OF train]\n\n"
        "  syncopate doctor --strategy mirrored --replicas 2\n"
        "  srun syncopate doctor --strategy multi-worker-mirrored --checkpoint-dir /shared/run\n"
        "  syncopate launch --workers 2 -- doctor --strategy multi-worker-mirrored\n\n"
        "`syncopate train --help` lists the flags. The first task prints each mistake with a "
        "remedy,\n"
        "and then the checks that passed. Exit codes: 0 no error was found; 1 an error was found;\n"
        "2 wrong usage.\n"};
  }
  CommandOptions options = parse_train(arguments, environment);
  auto* train = std::get_if<TrainOptions>(&options);
  if (train == nullptr) return options;
  return DoctorOptions{std::move(*train), environment};
}

constexpr std::array kCommands = {
    std::string_view("train"),   std::string_view("evaluate"), std::string_view("launch"),
    std::string_view("serve"),   std::string_view("sbatch"),   std::string_view("cluster"),
    std::string_view("doctor"),  std::string_view("network"),  std::string_view("export"),
    std::string_view("predict"), std::string_view("convert"),  std::string_view("info")};

constexpr std::string_view kUsage =
    "Trains a network under any distribution strategy, chosen by one flag. Initial values and "
    "samples\n"
    "are the same under all strategies.\n\n"
    "Usage: syncopate COMMAND [FLAGS]\n\n"
    "  train      trains a network; without flags, it trains mnist-cnn on generated digits\n"
    "  launch     starts a job of several processes on this machine: launch --workers N -- train\n"
    "  serve      runs a parameter server, which holds variables for the workers of a job\n"
    "  evaluate   measures a checkpoint on the test split: evaluate --checkpoint FILE\n"
    "  predict    prints the classes of pictures, arrays or tables: predict --checkpoint FILE "
    "INPUT...\n"
    "  export     writes the weights of a checkpoint for PyTorch: export --checkpoint FILE OUT\n"
    "  convert    writes the network in an ONNX file as a network file: convert model.onnx "
    "net.json\n"
    "             net.safetensors; or a data set as TFRecord files: convert --to tfrecord DATA "
    "DIR\n"
    "  cluster    prints this task's rank and cluster, as flags or environment variables give "
    "them\n"
    "  doctor     checks a machine or a job for mistakes before training, with the flags of "
    "train\n"
    "  sbatch     submits a job to Slurm, or prints its script: sbatch --strategy NAME --print\n"
    "  network    prints a network as a table, or as a network file: network --model NAME "
    "--json\n"
    "  info       lists what is built in: strategies, networks, data sets, libraries\n\n"
    "  --help     this text; `syncopate COMMAND --help` lists the flags of a command\n"
    "  --version  the version of the program\n\n"
    "Exit codes: 0 done; 1 failed; 2 wrong usage; 75 stopped by a signal after a checkpoint.\n";

bool is_local_rank(std::string_view word) {
  return word.starts_with("--local-rank=") || word.starts_with("--local_rank=");
}

}  // namespace

void tune_encoded(const FlagSet& flags, std::string_view data, Autotune& autotune) {
  if (!flags.has("--input-threads")) autotune.threads = is_encoded(data);
  if (!flags.has("--prefetch")) autotune.prefetch = is_encoded(data);
}

void require_data_name(const std::string& text) {
  const std::string name = text.substr(0, text.find(':'));
  const Names names = names_of(datasets());
  if (std::ranges::find(names, std::string_view(name)) != names.end()) return;
  std::string meant;
  std::error_code error;
  if (text.starts_with('/') || text.starts_with('.') || std::filesystem::exists(text, error)) {
    const bool is_file = std::filesystem::is_regular_file(text, error);
    const bool has_arrays = std::filesystem::exists(text + "/x_train.npy", error);
    const bool has_tables = std::filesystem::exists(text + "/train.csv", error);
    std::filesystem::directory_iterator entries(text, error);
    const bool has_folders = std::any_of(
        begin(entries), end(entries), [&](const auto& entry) { return entry.is_directory(error); });
    meant = has_arrays              ? fmt::format("; did you mean npy:{}?", text)
            : is_file || has_tables ? fmt::format("; did you mean csv:{}?", text)
            : has_folders           ? fmt::format("; did you mean images:{}?", text)
                                    : fmt::format("; did you mean mnist:{0} or cifar10:{0}?", text);
  } else if (const auto nearest = nearest_name(name, names)) {
    const auto row = std::ranges::find(datasets(), *nearest, &DatasetRow::name);
    meant = fmt::format("; did you mean '{}'?", row->pattern);
  }
  throw UsageError(fmt::format("--data {}: no such data set{} {} one of {}",
                               text.empty() ? "''" : text, meant.empty() ? ";" : meant,
                               meant.empty() ? "choose" : "Choose", data_patterns(", ")));
}

std::filesystem::path default_cache_dir(const Environment& environment) {
  const auto named = [&](const char* variable) { return environment.get(variable).value_or(""); };
  if (const std::string dir = named("SYNCOPATE_CACHE_DIR"); !dir.empty()) return dir;
  if (const std::string dir = named("XDG_CACHE_HOME"); !dir.empty()) {
    return std::filesystem::path(dir) / "syncopate";
  }
  if (const std::string dir = named("HOME"); !dir.empty()) {
    return std::filesystem::path(dir) / ".cache" / "syncopate";
  }
  return std::filesystem::temp_directory_path() / "syncopate-cache";
}

std::filesystem::path local_cache_dir(const Environment& environment) {
  std::filesystem::path folder = "/tmp";
  for (const char* const variable : {"TMPDIR", "SLURM_TMPDIR"}) {
    if (const std::string dir = environment.get(variable).value_or(""); !dir.empty()) folder = dir;
  }
  return folder / fmt::format("syncopate-{}", ::geteuid());
}

CommandOptions parse_command_line(std::span<const std::string> arguments,
                                  const Environment& environment) {
  // With --no-python, torch.distributed.launch puts this flag in front of the user's arguments.
  if (!arguments.empty() && is_local_rank(arguments.front())) arguments = arguments.subspan(1);
  if (arguments.empty()) {
    return TextOptions{.text = std::string(kUsage), .is_error = true};
  }
  const std::string& command = arguments.front();
  const auto rest = arguments.subspan(1);
  if (command == "train") return parse_train(rest, environment);
  if (command == "evaluate") return parse_evaluate(rest, environment);
  if (command == "info") return parse_info(rest);
  if (command == "export") return parse_export(rest);
  if (command == "predict") return parse_predict(rest);
  if (command == "network") return parse_network(rest, environment);
  if (command == "convert") return parse_convert(rest, environment);
  if (command == "serve") return parse_serve(rest, environment);
  if (command == "sbatch") return parse_sbatch(rest);
  if (command == "launch") return parse_launch(rest, environment);
  if (command == "doctor") return parse_doctor(rest, environment);
  if (command == "cluster") return parse_cluster(rest, environment);
  if (command == "help" && !rest.empty()) {
    return parse_command_line(std::vector<std::string>{rest.front(), "--help"}, environment);
  }
  if (command == "--help" || command == "-h" || command == "help") {
    return TextOptions{std::string(kUsage)};
  }
  if (command == "--version" || command == "-V") {
    return TextOptions{fmt::format("syncopate {}\n", program_version())};
  }
  Names known(kCommands.begin(), kCommands.end());
  known.insert(known.end(), {"--help", "--version"});
  throw UsageError(fmt::format("unknown command {}{}", command, suggest(command, known)));
}

}  // namespace syncopate
