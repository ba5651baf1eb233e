// Parses the command line of `syncopate convert`.
#include "deploy/cli/command_line.h"
#include "deploy/cli/flag_set.h"

namespace syncopate {

CommandOptions parse_convert(std::span<const std::string> arguments,
                             const Environment& environment) {
  ConvertOptions options;
  options.cache_dir = default_cache_dir(environment);
  FlagSet flags(
      "syncopate convert",
      "Writes a data set as TFRecord files of tf.train.Example, which TensorFlow and --data "
      "tfrecord: read. Pictures of images:DIR are copied as they are stored; other samples are "
      "written as values. Augmentation is left out.",
      "Examples:\n"
      "  syncopate convert --to tfrecord images:pictures records\n"
      "  syncopate train --data 'tfrecord:records/train-*::records/test-*'");
  flags.add("--to", &options.format, "format", {.choices = {"tfrecord"}, .required = true});
  flags.add("DATA", &options.data, "data set, as --data of train names it: " + data_patterns(" | "),
            {.required = true});
  flags.add("DIR", &options.dir, "folder to make, with train-*.tfrecord and test-*.tfrecord",
            {.required = true});
  flags.add("--cache-dir", &options.cache_dir, "folder in which rendered samples are kept",
            {.value = "DIR"});
  if (const auto help = flags.parse(arguments)) return TextOptions{*help};
  return options;
}

}  // namespace syncopate
