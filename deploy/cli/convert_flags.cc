// Parses the command line of `syncopate convert`.
#include "deploy/cli/command_line.h"
#include "deploy/cli/flag_set.h"
#include "models/base/errors.h"

namespace syncopate {
namespace {

constexpr const char* kConvertHelp =
    "ONNX operators of opsets 13 to 25 that can be converted, and their conditions:\n"
    "  Conv, ConvTranspose    the same stride in both directions, no dilation; ConvTranspose\n"
    "                         without groups\n"
    "  Pad                    with zeros, directly before Conv or AveragePool, or between an\n"
    "                         activation such as Relu and a MaxPool\n"
    "  BatchNormalization     of a feature map, with a weight and a bias\n"
    "  LayerNormalization     over the channels, if they are the last axis, with a weight and a "
    "bias\n"
    "  Gemm, MatMul           with a constant weight: become a dense layer; an Add after MatMul\n"
    "                         becomes the bias of this layer\n"
    "  MatMul                 of two computed values\n"
    "  MaxPool, AveragePool   a square window and equal pads; AveragePool counts the pads in the "
    "mean\n"
    "  GlobalAveragePool, ReduceMean\n"
    "  Resize                 enlarging by a whole number, linear with half_pixel or repeating\n"
    "                         pixels; also Tile, where Keras uses it to repeat rows and columns\n"
    "  Relu, LeakyRelu, Clip, Sigmoid, HardSigmoid, Tanh, Gelu (with Erf), HardSwish, Swish,\n"
    "  x * Sigmoid(x)\n"
    "  Add, Sub, Mul          of values of equal shapes; Mul also of a feature map and one factor\n"
    "                         per channel\n"
    "  Add, Sub, Mul, Div     with a number that is not trained\n"
    "  Concat                 of values of equal size, over the channels\n"
    "  Flatten, Reshape, Squeeze, Transpose    of up to three axes besides N, which stays first\n"
    "  Identity, Cast, Dropout\n"
    "  Slice, Split           of the channels or the last axis\n"
    "  Softmax                over the channels or the last axis; a Softmax at the end of the "
    "network\n"
    "                         is dropped, because the loss contains it\n"
    "Constant, Shape, Expand and some more operators are accepted if their results are "
    "constant.\n\n"
    "PyTorch folds batch norms into convolutions, unless the network is exported by\n"
    "  torch.onnx.export(model.train(), x, 'model.onnx', optimize=False,\n"
    "                    training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False)\n"
    "With Keras and tf2onnx, call the model once and then export it by\n"
    "  model.export('model.onnx', format='onnx')\n\n"
    "A network file does not contain the normalisation of the input; give `syncopate train` the\n"
    "normalisation by --normalize.\n\n"
    "With --to tfrecord, validation-*.tfrecord is also written if the data set has a validation\n"
    "split, and label.labels.txt if its classes have names. An interrupted conversion leaves no\n"
    "files.\n\n"
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
  FlagSet flags(
      "syncopate convert",
      "Converts an ONNX file, exported by PyTorch or Keras, to a network file and a file of "
      "weights. With --to tfrecord, converts a data set to TFRecord files of tf.train.Example "
      "instead, which TensorFlow and `syncopate train --data tfrecord:GLOB` can read. JPEG and PNG "
      "pictures (of images:, tfds: and tfrecord:) are copied unchanged; other samples are written "
      "as arrays of numbers. Samples are not augmented.",
      kConvertHelp);
  flags.add("--to", &options.format, "kind of the output", {.choices = {"network", "tfrecord"}});
  flags.add("SOURCE", &options.source,
            "ONNX file; with --to tfrecord, a data set: " + data_patterns(" | "),
            {.required = true});
  flags.add("OUT", &options.out,
            "network file to write, such as net.json; with --to tfrecord, a folder to create, for "
            "train-*.tfrecord and test-*.tfrecord",
            {.required = true});
  flags.add("WEIGHTS", &options.weights,
            "file of weights to write, such as net.safetensors; required with --to network, "
            "refused with --to tfrecord");
  flags.add("--cache-dir", &options.cache_dir,
            "folder for the generated samples of digits and shapes; later runs use them again",
            {.value = "DIR"});
  TrainOptions run;
  flags.add("--skip-bad-records", &run.image.skip_bad_records,
            "largest number of damaged pictures in each split: they are left out, and one more is "
            "an error. With N > 0, every picture is decoded to find the damaged ones",
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
