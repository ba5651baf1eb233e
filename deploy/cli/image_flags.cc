// The flags of --data images:DIR and of the data sets of TFRecord files.
#include <fmt/format.h>

#include <unistd.h>

#include <charconv>
#include <utility>

#include "deploy/cli/command_line.h"
#include "deploy/cli/flag_set.h"
#include "models/base/errors.h"

namespace syncopate {
namespace {

// Reads "64" or "48x64" as height and width.
void read_size(std::string_view text, ImageOptions& image) {
  constexpr std::int64_t kMost = 8192;
  const std::size_t cross = text.find('x');
  const auto read = [&](std::string_view digits) {
    std::int64_t value = 0;
    const auto end = digits.data() + digits.size();
    const auto result = std::from_chars(digits.data(), end, value);
    if (digits.empty() || result.ptr != end || result.ec != std::errc() || value < 1 ||
        value > kMost) {
      throw UsageError(fmt::format(
          "--image-size {}: expected pixels from 1 to {}, as in 224 or 192x224 (height x width)",
          text.empty() ? "''" : text, kMost));
    }
    return value;
  };
  image.height = read(text.substr(0, cross));
  image.width = cross == std::string_view::npos ? image.height : read(text.substr(cross + 1));
}

}  // namespace

std::filesystem::path local_cache_dir(const Environment& environment) {
  std::filesystem::path folder = "/tmp";
  for (const char* const variable : {"TMPDIR", "SLURM_TMPDIR"}) {
    if (const std::string dir = environment.get(variable).value_or(""); !dir.empty()) folder = dir;
  }
  return folder / fmt::format("syncopate-{}", ::geteuid());
}

void add_record_flags(FlagSet& flags, ImageOptions& image, std::string bad,
                      const std::string& default_text) {
  const auto or_default = [&](const std::string& text) {
    return default_text.empty() ? text : default_text;
  };
  flags.add("--skip-bad-records", &image.skip_bad_records, std::move(bad),
            {.least = 0.0, .most = 1e9});
  RecordFields& fields = image.fields;
  flags.add("--image-feature", &fields.image,
            "feature with the image, in records of tfrecord:, tfds: and otbtf:",
            {.value = "NAME", .default_text = or_default("that of the data set, or image")});
  flags.add("--label-feature", &fields.label, "feature with the class or the label map, likewise",
            {.value = "NAME", .default_text = or_default("that of the data set, or label")});
  flags.add(
      "--raw-shape", &fields.raw_shape,
      "shape and type of records of tfrecord: that hold values in place of a JPEG or PNG "
      "picture: u8, u16 or f32",
      {.value = "HxWxC:TYPE", .default_text = or_default("a picture"), .example = "64x64x4:u16"});
}

void add_image_flags(FlagSet& flags, ImageOptions& image, const std::string& default_size) {
  flags.add("--image-size", [&image](const std::string& text) { read_size(text, image); },
            "height and width that stored pictures are resized to",
            {.value = "N|HxW", .unit = "pixels", .default_text = default_size});
  flags.add("--exif", &image.apply_exif, "turn stored pictures as their EXIF orientation says");
  flags.add("--cache-mb", &image.cache_mb,
            "limit of the file of decoded pictures; 0: none. Without --cache-dir it is in "
            "$SLURM_TMPDIR, $TMPDIR or /tmp",
            {.unit = "MB", .default_text = "half of the disk", .least = 0.0, .most = 1e9});
  add_record_flags(
      flags, image,
      "damaged pictures in an epoch or evaluation of the whole job: training reads the next good "
      "one instead, evaluation leaves them out",
      default_size == std::to_string(kDefaultImageSize) ? "" : default_size);
}

}  // namespace syncopate
