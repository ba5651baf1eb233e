// What data sets of TFRecord files share: finding the features of a sample in a record, their
// errors, and the class of each record in the index.
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

// Which features of a record are the image and the class.
struct SampleFeatures {
  FeatureName image;
  FeatureName label;
};
// Returns the features that the flags name, by default these.
SampleFeatures features_of(const RecordFields& fields, std::string_view image,
                           std::string_view label);

// Parses a record. what: names it in messages. Throws FileError if it is no Example.
Example parse_example(std::span<const std::byte> record, const std::string& what);

// Returns a feature that has one or more values of this kind. Throws UsageError that names the flag
// and lists the features of the record if it is absent or has others; FileError if it is empty.
Feature require_feature(const Example& example, const FeatureName& feature, FeatureKind kind,
                        const std::string& what);

// Returns a feature that has one value of this kind. Throws FileError if it has more, and what
// require_feature() throws. noun: what a value is, "picture".
Feature require_one_value(const Example& example, const FeatureName& feature, FeatureKind kind,
                          std::string_view noun, const std::string& what);

// Returns the memory that unpacked files of one task may take. All tasks together may take half of
// the memory that this machine, or the cgroups of this process, have free. root: as of
// available_memory().
UnpackedBudget unpacked_budget(const DataOptions& options, const std::filesystem::path& root = "/");

// Returns options for an index that has the class of each record, read from a feature. Classes are
// below num_classes, or at most kLargestLabel if it is 0; others end the indexing by a FileError.
IndexOptions index_of_classes(const DataOptions& options, const FeatureName& label,
                              std::int64_t num_classes);
// Returns index options without a value.
IndexOptions index_options(const DataOptions& options, std::string value_key, RecordValue value);

// Throws FileError that says what is wrong with the first damaged record, if there is one, and
// whether all are damaged. may_be_damaged: some records may be damaged, but not all.
void require_intact(const RecordShards& shards, bool may_be_damaged = false);
// Logs a warning that names the first file without records, if there is one.
void warn_about_empty_files(const RecordShards& shards);

// A data set of the pictures in records. The index has the classes.
std::unique_ptr<Dataset> make_record_pictures(std::shared_ptr<const RecordShards> shards,
                                              const FeatureName& image, const ImageOptions& options,
                                              int num_classes, std::shared_ptr<SampleCache> cache,
                                              std::int64_t first_slot);

// Reads a sample's record and finds its image. Throws what require_feature() throws. Called when a
// data set is opened, so that a wrong flag is reported before training begins.
void require_readable(const Dataset& dataset, const RecordShards& shards);

// Throws UsageError if the first records hold no pictures but values, such as raw pixels.
// data_name: "tfrecord". flags: those that read values, up to the shape, such as "--raw-shape ".
void require_pictures(const RecordShards& shards, const FeatureName& image,
                      std::string_view data_name, std::string_view flags);

// Returns the names of the classes in LABEL.labels.txt, a name a line, as TensorFlow Datasets
// writes it; empty if there is no such file.
std::vector<std::string> read_class_names(const std::filesystem::path& folder,
                                          const std::string& label);
// Returns the name of that file.
std::string class_names_file(std::string label);

// Makes the training and the test split out of one data set: one record in ten, by a hash of its
// file's name and its number, becomes a test sample. Throws UsageError if a split would be empty.
void divide_in_ten(std::shared_ptr<const Dataset> whole, const RecordShards& shards,
                   DataSplits& splits);

// Opens the cache of decoded pictures, as open_picture_cache() does; null if its folder could not
// be written when the records were indexed. A warning has been logged then.
std::shared_ptr<SampleCache> open_record_cache(std::string_view data_name,
                                               std::string_view contents, const ImageOptions& image,
                                               const IndexOptions& index);

// Logs a warning if two of the files are the same file: its samples then count twice.
void warn_about_repeated_files(const RecordShards& shards);
// Returns the files that are in both lists, by what they are and not by name.
std::vector<std::filesystem::path> shared_files(const RecordShards& left,
                                                const RecordShards& right);

}  // namespace syncopate
