// Functions that the data sets of TFRecord files share. They find the features of a sample in a
// record, report errors of features, and index the class of each record.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "worker/input/dataset.h"
#include "worker/input/pictures/sample_cache.h"
#include "worker/input/record/example.h"
#include "worker/input/record/record_index.h"
#include "worker/input/record/record_shards.h"

namespace syncopate {

// A feature and the flag that names it, for messages.
struct FeatureName {
  std::string_view flag;  // "--label-feature"
  std::string name;
};

// The features of a record that are the image and the class.
struct SampleFeatures {
  FeatureName image;
  FeatureName label;
};
// Returns the features that the flags name. image, label: the name of the feature that is used if
// the flags do not name the image or the class.
SampleFeatures features_of(const RecordFields& fields, std::string_view image,
                           std::string_view label);

// Parses a record. what: the name of the record in messages. Throws FileError if the record is not
// an Example.
Example parse_example(std::span<const std::byte> record, const std::string& what);

// Returns a feature that has one or more values of this kind. If the feature is absent or has
// values of another kind, throws UsageError naming the flag and the features of the record. Throws
// FileError if the feature is empty.
Feature require_feature(const Example& example, const FeatureName& feature, FeatureKind kind,
                        const std::string& what);

// Returns a feature that has exactly one value of this kind. noun: the noun for a value, such as
// "picture". Throws FileError if the feature has more values, and what require_feature() throws.
Feature require_one_value(const Example& example, const FeatureName& feature, FeatureKind kind,
                          std::string_view noun, const std::string& what);

// Returns the memory that the unpacked files of one task may use. All tasks together may use half
// of the free memory of this machine and of the cgroups of this process. root: see
// available_memory().
UnpackedBudget unpacked_budget(const DataOptions& options, const std::filesystem::path& root = "/");

// Returns options for an index with the class of each record, which is read from the feature
// `label`. The class must be below num_classes, or at most kLargestLabel if num_classes is 0;
// otherwise the indexing throws FileError.
IndexOptions index_of_classes(const DataOptions& options, const FeatureName& label,
                              std::int64_t num_classes);
// Returns options for an index that has the result of the function `value` for each record.
// value_key: IndexOptions::value_key. The cache folder and on_progress come from `options`.
IndexOptions index_options(const DataOptions& options, std::string value_key, RecordValue value);

// Throws FileError if a record is damaged. The error describes the first damaged record, and says
// whether all records are damaged. may_be_damaged: if true, throws only if all records are damaged.
void require_intact(const RecordShards& shards, bool may_be_damaged = false);
// Logs a warning naming the first file without records, if there is such a file.
void warn_about_empty_files(const RecordShards& shards);

// Makes a data set of the pictures in records. The index of `shards` has the classes.
std::unique_ptr<Dataset> make_record_pictures(std::shared_ptr<const RecordShards> shards,
                                              const FeatureName& image, const ImageOptions& options,
                                              int num_classes, std::shared_ptr<SampleCache> cache,
                                              std::int64_t first_slot);

// Parses a value of --raw-shape, such as "64x64x4:u16" or "784:f32". The shape is [H, W, C] or [F],
// the type u8, u16 or f32. Throws UsageError for text in another form.
TensorSpec parse_raw_shape(const std::string& text);

// Makes a data set of the values in a feature, which are little-endian bytes, or for f32 also a
// list of floats. The index of `shards` has the classes.
std::unique_ptr<Dataset> make_record_values(std::shared_ptr<const RecordShards> shards,
                                            const FeatureName& image, const TensorSpec& input,
                                            int num_classes);

// Reads the first record that is not damaged and finds the image in it. Throws what
// require_feature() throws. Called when a data set is opened, so that a wrong flag is reported
// before training begins.
void require_readable(const Dataset& dataset, const RecordShards& shards);

// Throws UsageError if the first records have values, such as raw pixels, and not pictures.
// data_name: such as "tfrecord". flags: the flags by which such values can be read, such as
// "--raw-shape ", to which the message adds the shape.
void require_pictures(const RecordShards& shards, const FeatureName& image,
                      std::string_view data_name, std::string_view flags);

// Returns the names of the classes from the file LABEL.labels.txt of TensorFlow Datasets, which has
// one name per line; empty if the file does not exist.
std::vector<std::string> read_class_names(const std::filesystem::path& folder,
                                          const std::string& label);
// Returns the name of the file that read_class_names() reads.
std::string class_names_file(std::string label);

// Divides a data set into the training and the test split. About one record in ten becomes a test
// sample, chosen by a hash of the file's name and the record's number. Throws UsageError if a split
// would be empty.
void divide_in_ten(std::shared_ptr<const Dataset> whole, const RecordShards& shards,
                   DataSplits& splits);

// Opens the cache of decoded pictures, see open_picture_cache(). Returns null if the cache folder
// could not be written when the records were indexed, which logged a warning.
std::shared_ptr<SampleCache> open_record_cache(std::string_view data_name,
                                               std::string_view contents, const ImageOptions& image,
                                               const IndexOptions& index);

// Logs a warning if two paths are the same file, because its samples are then used twice.
void warn_about_repeated_files(const RecordShards& shards);
// Returns the files of `left` that are also in `right`, compared by FileId and not by name.
std::vector<std::filesystem::path> shared_files(const RecordShards& left,
                                                const RecordShards& right);

}  // namespace syncopate
