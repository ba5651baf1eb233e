// The flags of train about the network and its samples.
#include <fmt/format.h>

#include "models/base/errors.h"
#include "models/base/parse_number.h"
#include "models/zoo/zoo.h"
#include "worker/checkpoint/weights_file.h"
#include "worker/run/flags/train_flag.h"

namespace syncopate {
namespace {

using Subject = TrainFlag::Subject;

constexpr int kMostInputThreads = 1024;

// Tasks may find a network file under different paths, so the bytes are compared.
FlagText compared_model(const TrainOptions& o) {
  if (o.model.empty() || !o.model.starts_with(kNetworkFile)) return o.model;
  return describe_file(o.model.substr(kNetworkFile.size()));
}

FlagText text_unless_empty(const std::string& text) {
  return text.empty() ? std::nullopt : FlagText(text);
}

// Reads "64" or "48x64" as height and width.
void read_size(std::string_view text, ImageOptions& image) {
  constexpr std::int64_t kMost = 8192;
  const std::size_t cross = text.find('x');
  const auto read = [&](std::string_view digits) {
    const auto value = parse_number<std::int64_t>(digits).value_or(0);
    if (value < 1 || value > kMost) {
      throw UsageError(fmt::format(
          "--image-size {}: expected pixels from 1 to {}, as in 224 or 192x224 (height x width)",
          text.empty() ? "''" : text, kMost));
    }
    return value;
  };
  image.height = read(text.substr(0, cross));
  image.width = cross == std::string_view::npos ? image.height : read(text.substr(cross + 1));
}

// Reads a number that the user gives, or "auto", which leaves it to the program.
void read_tuned(std::string_view flag, const std::string& text, int& count, bool& is_tuned) {
  is_tuned = text == "auto";
  if (is_tuned) return;
  count = parse_number<int>(text).value_or(0);
  if (count >= 1 && count <= kMostInputThreads) return;
  throw UsageError(fmt::format("{} {}: expected auto or a whole number from 1 to {}", flag, text,
                               kMostInputThreads));
}

FlagRules tuned_count(int count) {
  return {.value = "auto|N", .default_text = fmt::format("auto for pictures, else {}", count)};
}

// The features of records that hold an image and its class.
std::vector<TrainFlag> record_flags() {
  std::vector<TrainFlag> flags = {
      {.name = "--image-feature",
       .help = "name of the feature that contains the image in each record of --data tfrecord:, "
               "tfds: or otbtf:",
       .field = [](TrainOptions& o) -> FlagTarget { return &o.image.fields.image; },
       .rules = {.value = "NAME",
                 .default_text = "the name in the data set's own files, else \"image\""}},
      {.name = "--label-feature",
       .help = "name of the feature that contains the class or the label map in each record of "
               "--data tfrecord:, tfds: or otbtf:",
       .field = [](TrainOptions& o) -> FlagTarget { return &o.image.fields.label; },
       .rules = {.value = "NAME",
                 .default_text = "the name in the data set's own files, else \"label\""}},
      {.name = "--raw-shape",
       .help = "shape and type (u8, u16 or f32) of each sample. Required if the records of --data "
               "tfrecord: contain arrays of numbers instead of JPEG or PNG pictures",
       .field = [](TrainOptions& o) -> FlagTarget { return &o.image.fields.raw_shape; },
       .rules = {.value = "HxWxC:TYPE",
                 .default_text = "records contain JPEG or PNG pictures",
                 .example = "64x64x4:u16"}},
  };
  for (TrainFlag& flag : flags) {
    flag.subject = Subject::kSamples;
    flag.has_recorded_default = true;
    flag.in_comparison = {InComparison::kOpensData};
  }
  return flags;
}

// How samples become batches.
std::vector<TrainFlag> input_flags() {
  const InputOptions defaults;
  return {
      {.name = "--split",
       .help =
           "fraction of the training samples that is held out for the evaluations during training",
       .field = [](TrainOptions& o) -> FlagTarget { return &o.split; },
       .rules = {.value = "val=FRACTION", .default_text = "none"},
       .in_comparison = {InComparison::kRefused,
                         "variants are compared on the splits that the data have"}},
      {.name = "--augment",
       .help = "random augmentation of each training sample (crop-flip: pad by 4 pixels, crop, "
               "mirror; random-resized-crop: crop to 8 to 100 % of the area, resize, mirror)",
       .field = [](TrainOptions& o) -> FlagTarget { return enum_target(o.input.augment); },
       .decides_updates = true},
      {.name = "--input-threads",
       .help = "number of threads that read and augment samples; auto: as many as the training "
               "steps need, at most one per CPU. The number of threads does not change the results",
       .field = [](TrainOptions& o) -> FlagTarget {
         return [&o](const std::string& text) {
           read_tuned("--input-threads", text, o.input.threads, o.input.autotune.threads);
         };
       },
       .rules = tuned_count(defaults.threads),
       .text = [](const TrainOptions& o) { return FlagText(threads_text(o.input)); },
       .agreement = TrainFlag::Agreement::kNone,
       .in_comparison = {InComparison::kNeutral}},
      {.name = "--prefetch",
       .help = "number of batches to prepare in advance; auto: as many as the input threads need, "
               "limited by the memory",
       .field = [](TrainOptions& o) -> FlagTarget {
         return [&o](const std::string& text) {
           read_tuned("--prefetch", text, o.input.prefetch, o.input.autotune.prefetch);
         };
       },
       .rules = tuned_count(defaults.prefetch),
       .text = [](const TrainOptions& o) { return FlagText(prefetch_text(o.input)); },
       .agreement = TrainFlag::Agreement::kNone,
       .in_comparison = {InComparison::kNeutral}},
  };
}

}  // namespace

std::vector<TrainFlag> data_flags() {
  std::vector<TrainFlag> flags = {
      {.name = "--model",
       .help = "network",
       .field = [](TrainOptions& o) -> FlagTarget { return &o.model; },
       .rules = {.choices = network_names(), .explain = why_no_network},
       .compared = compared_model,
       .subject = Subject::kWorkload,
       .has_recorded_default = true,
       .in_comparison = kOfCompareAndPlan},
      {.name = "--head",
       .help = "hidden layers to insert before the output layer, such as dense:1016,dense:64",
       .field = [](TrainOptions& o) -> FlagTarget {
         return [&o](const std::string& text) {
           parse_head(text);
           o.network.head = text;
         };
       },
       .rules = {.value = "LAYERS", .default_text = "none"},
       .text = [](const TrainOptions& o) { return text_unless_empty(o.network.head); },
       .subject = Subject::kWorkload,
       .has_recorded_default = true},
      {.name = "--normalize",
       .help =
           "mean M and standard deviation S by which each input channel is normalised: imagenet | "
           "none | M,M,M/S,S,S. Before that, pixels are scaled to [0, 1]; f32 values are not "
           "scaled. For pretrained weights, give the numbers that were used in their training",
       .field = [](TrainOptions& o) -> FlagTarget {
         return [&o](const std::string& text) {
           parse_normalize(text);
           o.network.normalize = text;
         };
       },
       .rules = {.value = "NUMBERS",
                 .default_text = "the numbers of the data set; none for f32 arrays"},
       .text = [](const TrainOptions& o) { return text_unless_empty(o.network.normalize); },
       .subject = Subject::kWorkload,
       .has_recorded_default = true},
      {.name = "--data",
       .help = "data set: " + data_patterns(" | ") +
               ". The folder of npy:DIR contains x_train.npy, y_train.npy, x_test.npy and "
               "y_test.npy; the folder of images:DIR contains one folder per class",
       .field = [](TrainOptions& o) -> FlagTarget { return &o.data; },
       .rules = {.value = "NAME"},
       .agreement = TrainFlag::Agreement::kNone,
       .subject = Subject::kWorkload,
       .has_recorded_default = true,
       .in_comparison = kOfCompareAndPlan},
      {.name = "--cache-dir",
       .help = "folder for files that later runs use again: the generated samples of digits and "
               "shapes, and a list of the algorithms that were fastest on GPUs",
       .field = [](TrainOptions& o) -> FlagTarget { return &o.cache_dir; },
       .rules = {.value = "DIR"},
       .agreement = TrainFlag::Agreement::kNone,
       .subject = Subject::kAnyWorkload,
       .in_comparison = {.use = InComparison::kNeutral, .is_for_replay = true}},
      {.name = "--seed",
       .help = "seed of initial values, sample order, augmentation and synthetic data",
       .field = [](TrainOptions& o) -> FlagTarget { return &o.strategy.seed; },
       .subject = Subject::kAnyWorkload,
       .has_recorded_default = true,
       .in_comparison = {.use = InComparison::kSetByCompare,
                         .advice = "give --seeds N and --first-seed S before the --",
                         .plan_advice = kOfPlan}},
      {.name = "--image-size",
       .help = "height and width of JPEG and PNG pictures after resizing",
       .field = [](TrainOptions& o) -> FlagTarget {
         return [&o](const std::string& text) { read_size(text, o.image); };
       },
       .rules = {.value = "N|HxW",
                 .unit = "pixels",
                 .default_text = std::to_string(kDefaultImageSize)},
       .text =
           [](const TrainOptions& o) {
             if (o.image.height == 0) return FlagText();
             return FlagText(fmt::format("{}x{}", o.image.height, o.image.width));
           },
       .subject = Subject::kSamples,
       .has_recorded_default = true,
       .in_comparison = {InComparison::kOpensData}},
      {.name = "--exif",
       .help = "rotate or mirror each picture as its EXIF orientation requires",
       .field = [](TrainOptions& o) -> FlagTarget { return &o.image.apply_exif; },
       .subject = Subject::kSamples,
       .has_recorded_default = true,
       .in_comparison = {InComparison::kOpensData}},
      {.name = "--cache-mb",
       .help = "largest size of the cache file for decoded pictures; 0: no cache. Without "
               "--cache-dir, the file is in $SLURM_TMPDIR, else in $TMPDIR, else in /tmp",
       .field = [](TrainOptions& o) -> FlagTarget { return &o.image.cache_mb; },
       .rules =
           {.unit = "MB", .default_text = "half of the free disk space", .least = 0.0, .most = 1e9},
       .text =
           [](const TrainOptions& o) {
             return o.image.cache_mb < 0 ? FlagText()
                                         : FlagText(fmt::format("{}", o.image.cache_mb));
           },
       .agreement = TrainFlag::Agreement::kNone,
       .subject = Subject::kSamples,
       .in_comparison = {.use = InComparison::kNeutral, .is_for_replay = true}},
      {.name = "--skip-bad-records",
       .help = "largest number of damaged pictures that all tasks together accept in one epoch or "
               "one evaluation. Training replaces a damaged picture by the next intact one; an "
               "evaluation leaves damaged pictures out",
       .field = [](TrainOptions& o) -> FlagTarget { return &o.image.skip_bad_records; },
       .rules = {.least = 0.0, .most = 1e9},
       .is_unset_at_zero = true,
       .subject = Subject::kSamples,
       .has_recorded_default = true,
       .in_comparison = {InComparison::kOpensData}},
  };
  for (const auto& more : {record_flags(), input_flags()}) {
    flags.insert(flags.end(), more.begin(), more.end());
  }
  return flags;
}

}  // namespace syncopate
