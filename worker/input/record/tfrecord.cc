// tfrecord:GLOB: TFRecord files of Examples with an image and a class, whatever program wrote them.
#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <utility>

#include "models/base/errors.h"
#include "models/base/log.h"
#include "worker/input/array/value_statistics.h"
#include "worker/input/pictures/picture_dataset.h"
#include "worker/input/record/record_samples.h"
#include "worker/input/record/shard_files.h"

namespace syncopate {
namespace {

// The patterns of tfrecord:TRAIN[::[VALIDATION::]TEST]; "": there is none.
struct Globs {
  std::string train;
  std::string validation;
  std::string test;
};

Globs split_globs(std::string_view text) {
  std::vector<std::string> globs;
  for (std::string_view rest = text;;) {
    const std::size_t colons = rest.find("::");
    globs.emplace_back(rest.substr(0, colons));
    if (colons == std::string_view::npos) break;
    rest.remove_prefix(colons + 2);
  }
  constexpr std::size_t kMostSplits = 3;
  if (globs.size() > kMostSplits || std::ranges::find(globs, "") != globs.end()) {
    throw UsageError(fmt::format(
        "--data 'tfrecord:{}': {}; expected --data 'tfrecord:GLOB', 'tfrecord:GLOB::TEST_GLOB' or "
        "'tfrecord:GLOB::VAL_GLOB::TEST_GLOB'",
        text,
        globs.size() > kMostSplits ? "more than three patterns" : "a pattern beside :: is empty"));
  }
  if (globs.size() == 1) return {globs[0], "", ""};
  return {globs[0], globs.size() == kMostSplits ? globs[1] : "", globs.back()};
}

// split: "test" or "validation".
void warn_about_shared_files(const RecordShards& train, const RecordShards& other,
                             std::string_view split) {
  const std::vector<std::filesystem::path> shared = shared_files(train, other);
  if (shared.empty()) return;
  log(LogLevel::kWarning,
      fmt::format("training and {0} samples share {1} file{2}, first {3}: the {0} accuracy says "
                  "nothing about new samples",
                  split, shared.size(), shared.size() == 1 ? "" : "s", shared.front().string()));
}

// Opens one split after another with the same features.
class SplitOpener {
 public:
  explicit SplitOpener(const DataOptions& options)
      : fields_(features_of(options.image.fields, "image", "label")),
        image_(options.image.with_size()),
        index_(index_of_classes(options, fields_.label, 0)),
        budget_(unpacked_budget(options)) {
    if (!options.image.fields.raw_shape.empty()) {
      raw_ = parse_raw_shape(options.image.fields.raw_shape);
      if (looks_channels_first(raw_->shape)) {
        log(LogLevel::kWarning,
            fmt::format("--raw-shape {}: read as HxWxC; if the values are CxHxW, write them with "
                        "np.ascontiguousarray(a.transpose(1, 2, 0))",
                        options.image.fields.raw_shape));
      }
    }
  }

  bool is_raw() const { return raw_.has_value(); }
  const std::string& label() const { return fields_.label.name; }

  std::shared_ptr<const RecordShards> open(const std::string& pattern) {
    const auto shards =
        std::make_shared<const RecordShards>(files_of_pattern(pattern), index_, budget_);
    if (shards->size() == 0) {
      throw FileError(fmt::format(
          "--data tfrecord: the files of {} hold no records; fetch them again, or give a "
          "pattern of others",
          pattern));
    }
    warn_about_repeated_files(*shards);
    require_intact(*shards, !is_raw() && image_.skip_bad_records > 0);
    warn_about_empty_files(*shards);
    return shards;
  }

  // cache_name: what names the decoded pictures of all splits.
  std::unique_ptr<Dataset> make(const std::shared_ptr<const RecordShards>& shards, int num_classes,
                                std::string_view cache_name) {
    auto split = raw_ ? make_record_values(shards, fields_.image, *raw_, num_classes)
                      : make_pictures(shards, num_classes, cache_name);
    require_readable(*split, *shards);
    return split;
  }

 private:
  std::unique_ptr<Dataset> make_pictures(const std::shared_ptr<const RecordShards>& shards,
                                         int num_classes, std::string_view cache_name) {
    require_pictures(*shards, fields_.image, "tfrecord", "--raw-shape ");
    if (!has_cache_) {
      cache_ = open_record_cache("tfrecord", cache_name, image_, index_);
      has_cache_ = true;
    }
    const std::int64_t first_slot = num_slots_;
    num_slots_ += shards->size();
    return make_record_pictures(shards, fields_.image, image_, num_classes, cache_, first_slot);
  }

  SampleFeatures fields_;
  ImageOptions image_;
  IndexOptions index_;
  UnpackedBudget budget_;
  std::optional<TensorSpec> raw_;
  std::shared_ptr<SampleCache> cache_;
  bool has_cache_ = false;
  std::int64_t num_slots_ = 0;
};

// Returns as many as there are names, or one more than the largest class if there are none. Throws
// FileError if a class has no name. splits: may be null.
int number_of_classes(std::initializer_list<const RecordShards*> splits,
                      const std::vector<std::string>& names, const std::filesystem::path& file) {
  std::int64_t largest = 0;
  for (const RecordShards* const shards : splits) {
    if (shards != nullptr) largest = std::max(largest, shards->largest_value());
  }
  if (names.empty()) return static_cast<int>(largest + 1);
  if (std::cmp_less(largest, names.size())) return static_cast<int>(names.size());
  throw FileError(
      fmt::format("{} names {} classes, and a record has class {}; correct or remove it",
                  file.string(), names.size(), largest));
}

void refuse_picture_flags(const ImageOptions& image) {
  const char* const flag = image.height != 0            ? "--image-size"
                           : image.apply_exif           ? "--exif"
                           : image.skip_bad_records > 0 ? "--skip-bad-records"
                                                        : nullptr;
  if (flag == nullptr) return;
  throw UsageError(fmt::format(
      "{} is for pictures, and --raw-shape says that the records have values; leave one "
      "of the two out",
      flag));
}

}  // namespace

DataSplits open_tfrecord(std::string_view text, const DataOptions& options) {
  if (!options.image.fields.raw_shape.empty()) refuse_picture_flags(options.image);
  const Globs globs = split_globs(text);
  SplitOpener opener(options);
  const auto open = [&](const std::string& pattern) {
    return pattern.empty() ? nullptr : opener.open(pattern);
  };
  const auto train = open(globs.train);
  const auto validation = open(globs.validation);
  const auto test = open(globs.test);
  DataSplits splits{.name = "tfrecord"};
  const std::filesystem::path folder = std::filesystem::path(train->file(0).path()).parent_path();
  splits.class_names = read_class_names(folder, opener.label());
  const int classes =
      number_of_classes({train.get(), validation.get(), test.get()}, splits.class_names,
                        folder / class_names_file(opener.label()));
  const std::string cache_name = std::filesystem::absolute(text).string();
  std::unique_ptr<Dataset> whole = opener.make(train, classes, cache_name);
  if (test == nullptr) {
    divide_in_ten(std::move(whole), *train, splits);
  } else {
    warn_about_shared_files(*train, *test, "test");
    splits.train = std::move(whole);
    if (validation != nullptr) {
      warn_about_shared_files(*train, *validation, "validation");
      splits.validation = opener.make(validation, classes, cache_name);
    }
    splits.test = opener.make(test, classes, cache_name);
  }
  if (opener.is_raw()) {
    set_value_statistics(splits);
  } else {
    describe_pictures(splits);
  }
  return splits;
}

}  // namespace syncopate
