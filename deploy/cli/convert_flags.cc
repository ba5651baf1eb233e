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
      "The folder also has validation-*.tfrecord and label.labels.txt, with the names of the "
      "classes, if\nthe data set has such. A run that is stopped leaves nothing.\n\n"
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
  add_record_flags(flags, options.image,
                   "damaged pictures of a split that may be left out; with it each is decoded to "
                   "find out");
  if (const auto help = flags.parse(arguments)) return TextOptions{*help};
  return options;
}

}  // namespace syncopate
