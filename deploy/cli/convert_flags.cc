// Parses the command line of `syncopate convert`.
#include "deploy/cli/command_line.h"
#include "deploy/cli/flag_set.h"
#include "models/base/errors.h"

namespace syncopate {
namespace {

constexpr const char* kConvertHelp =
    "Operators of ONNX that are taken, of opsets 13 to 25:\n"
    "  Conv, ConvTranspose    one stride, no dilation; ConvTranspose without groups; a Pad of "
    "zeros\n"
    "                         in front of Conv, AveragePool, or Relu and MaxPool\n"
    "  BatchNormalization     of a map, with a weight and a bias\n"
    "  LayerNormalization     over the channels, if they are the last axis, with a weight and a "
    "bias\n"
    "  Gemm, MatMul and Add   with a constant weight: a dense layer; MatMul of two values\n"
    "  MaxPool, AveragePool   a square window, equal pads, which count in the mean\n"
    "  GlobalAveragePool, ReduceMean\n"
    "  Resize                 linear with half_pixel, or repeated pixels, by a whole number; also\n"
    "                         Tile as Keras repeats rows and columns\n"
    "  Relu, LeakyRelu, Clip, Sigmoid, HardSigmoid, Tanh, Gelu (with Erf), HardSwish, Swish,\n"
    "  x * Sigmoid(x)\n"
    "  Add, Sub, Mul, Concat  of values of one shape, or over the channels; Mul also of a map and\n"
    "                         the factors of its channels; Add, Sub, Mul, Div with a number\n"
    "                         that is not trained\n"
    "  Flatten, Reshape, Squeeze, Transpose (N stays), of up to three sides; Identity, Cast, "
    "Dropout\n"
    "  Slice, Split           of the channels or the last axis\n"
    "  Softmax                over the channels or the last axis; at the end it is dropped, "
    "because\n"
    "                         the loss contains it\n"
    "and Constant, Shape, Expand and others between them where they give constants.\n\n"
    "PyTorch folds batch norms into convolutions unless the call is\n"
    "  torch.onnx.export(model.train(), x, 'model.onnx', optimize=False,\n"
    "                    training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False)\n"
    "Keras with tf2onnx exports a model that was called by\n"
    "  model.export('model.onnx', format='onnx')\n\n"
    "A network file has no normalisation of the input: train normalises it, by --normalize.\n\n"
    "A folder of records also has validation-*.tfrecord and label.labels.txt, with the names of "
    "the\n"
    "classes, if the data set has such. A run that is stopped leaves nothing.\n\n"
    "Examples:\n"
    "  syncopate convert model.onnx net.json net.safetensors\n"
    "  syncopate train --model file:net.json --init-from net.safetensors --data images:pictures\n"
    "  syncopate convert --to tfrecord images:pictures records\n"
    "  syncopate train --data 'tfrecord:records/train-*::records/test-*'";

}  // namespace

CommandOptions parse_convert(std::span<const std::string> arguments,
                             const Environment& environment) {
  ConvertOptions options;
  options.cache_dir = default_cache_dir(environment);
  FlagSet flags("syncopate convert",
                "Writes the network of an ONNX file, as PyTorch and Keras export it, as a network "
                "file and a file of its weights. With --to tfrecord: writes a data set as TFRecord "
                "files of tf.train.Example, which TensorFlow and --data tfrecord: read. Stored "
                "pictures (images:, tfds: and tfrecord:) are copied as they are; other samples are "
                "written as values. Augmentation is left out.",
                kConvertHelp);
  flags.add("--to", &options.format, "format", {.choices = {"network", "tfrecord"}});
  flags.add(
      "SOURCE", &options.source,
      "ONNX file; for tfrecord: data set, as --data of train names it: " + data_patterns(" | "),
      {.required = true});
  flags.add("OUT", &options.out,
            "network file to write, such as net.json; for tfrecord: folder to make, with "
            "train-*.tfrecord and test-*.tfrecord",
            {.required = true});
  flags.add("WEIGHTS", &options.weights,
            "file of weights to write, such as net.safetensors; not for tfrecord");
  flags.add("--cache-dir", &options.cache_dir, "folder that keeps rendered samples",
            {.value = "DIR"});
  TrainOptions run;
  flags.add("--skip-bad-records", &run.image.skip_bad_records,
            "damaged pictures of a split that may be left out; with N > 0 every picture is decoded "
            "to find them",
            {.least = 0.0, .most = 1e9});
  add_flags_of_train(flags, run, {"--image-feature", "--label-feature", "--raw-shape"});
  if (const auto help = flags.parse(arguments)) return TextOptions{*help};
  options.image = run.image;
  const bool is_network = options.format == "network";
  for (const char* flag :
       {"--image-feature", "--label-feature", "--raw-shape", "--skip-bad-records"}) {
    flags.require(flag, !is_network, "--to tfrecord");
  }
  if (is_network && options.weights.empty()) {
    throw UsageError(
        "syncopate convert: expected three files: convert model.onnx net.json net.safetensors; a "
        "data set needs --to tfrecord");
  }
  if (!is_network && !options.weights.empty()) {
    throw UsageError("syncopate convert --to tfrecord: expected DATA and DIR, found a third word");
  }
  return options;
}

}  // namespace syncopate
