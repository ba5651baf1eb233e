// Reads npy:DIR, a folder of arrays that NumPy saved. Samples are read from their file when they
// are needed; targets are kept in memory.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <memory>
#include <utility>

#include "models/base/errors.h"
#include "models/base/log.h"
#include "models/base/random.h"
#include "worker/input/array/class_labels.h"
#include "worker/input/array/npy_file.h"
#include "worker/input/array/targets.h"
#include "worker/input/array/value_statistics.h"
#include "worker/input/dataset.h"

namespace syncopate {
namespace {

constexpr std::size_t kLargestSample = std::size_t{256} << 20;  // bytes

// The samples of a file and their targets.
class NpyDataset final : public Dataset {
 public:
  NpyDataset(std::shared_ptr<const NpyFile> samples, Targets targets, SampleSpec spec)
      : samples_(std::move(samples)), targets_(std::move(targets)), spec_(std::move(spec)) {}

  std::int64_t size() const noexcept override { return samples_->num_rows(); }
  const SampleSpec& spec() const noexcept override { return spec_; }
  void read(std::int64_t index, const Draw& draw, const SampleView& sample) const override {
    samples_->read(index, sample.inputs[0]);
    if (const auto bad = find_bad_value(spec_.inputs[0], sample.inputs[0])) {
      throw FileError(
          fmt::format("{}: value {} of row {}, at byte {}, is {}; expected finite numbers; "
                      "remove or replace such rows with NumPy, for example by np.nan_to_num",
                      samples_->path(), bad->place, index,
                      samples_->offset_of(index) + bad->place * sizeof(float), bad->value));
    }
    apply_draw(draw, spec_.inputs[0], sample.inputs[0], sample.inputs[0]);
    targets_.read(index, sample.target);
  }
  std::int32_t label(std::int64_t index) const override { return targets_.label(index); }
  std::uint64_t fingerprint(std::int64_t index) const override {
    check(index >= 0 && index < size(), "a sample outside the data set");
    std::vector<std::byte> bytes(samples_->row_bytes());
    samples_->read(index, bytes);
    return hash_name({reinterpret_cast<const char*>(bytes.data()), bytes.size()}) ^
           targets_.fingerprint(index);
  }

 private:
  std::shared_ptr<const NpyFile> samples_;
  Targets targets_;
  SampleSpec spec_;
};

// The two files of a split.
struct ArrayPair {
  std::shared_ptr<const NpyFile> samples;
  Targets targets;
  std::string targets_path;
};

DType dtype_of(const NpyFile& file) {
  constexpr std::array<std::pair<std::string_view, DType>, 3> kTypes = {
      {{"u1", DType::kU8}, {"u2", DType::kU16}, {"f4", DType::kF32}}};
  for (const auto& [type, dtype] : kTypes) {
    if (type == file.header().type) return dtype;
  }
  throw FileError(
      fmt::format("{}: its samples are {}; expected uint8, uint16 or float32; convert "
                  "them: {}",
                  file.path(), numpy_name(file.header().type),
                  numpy_conversion(file.path(), "a.astype('float32')")));
}

// Returns the shape of a sample: [H, W, C] or [F].
Shape sample_shape_of(const NpyFile& file) {
  Shape shape = file.header().shape;
  const std::string text = to_string(shape);
  shape.erase(shape.begin());
  const bool is_empty = std::ranges::find(shape, 0) != shape.end();
  if (shape.empty() || shape.size() > 3 || is_empty || file.row_bytes() > kLargestSample) {
    throw FileError(
        fmt::format("{}: its shape is {}; expected [N, H, W], [N, H, W, C] or [N, F] with samples "
                    "of 1 byte to 256 MB",
                    file.path(), text));
  }
  if (looks_channels_first(shape)) {
    log(LogLevel::kWarning,
        fmt::format(
            "{} is {}, read as [N, H, W, C]; if it is [N, C, H, W]: {}", file.path(), text,
            numpy_conversion(file.path(), "np.ascontiguousarray(a.transpose(0, 2, 3, 1))")));
  }
  if (shape.size() == 2) shape.push_back(1);
  return shape;
}

ArrayPair open_pair(const std::filesystem::path& dir, const std::string& split) {
  const std::filesystem::path x = dir / ("x_" + split + ".npy");
  const std::filesystem::path y = dir / ("y_" + split + ".npy");
  ArrayPair pair{std::make_shared<NpyFile>(x), read_npy_targets(NpyFile(y)), y.string()};
  const std::int64_t samples = pair.samples->num_rows();
  if (samples != pair.targets.size()) {
    throw FileError(fmt::format("{} has {} samples, and {} has {} {}; expected as many", x.string(),
                                samples, y.string(), pair.targets.size(),
                                pair.targets.are_numbers() ? "targets" : "labels"));
  }
  if (samples == 0) throw FileError(x.string() + " holds no samples; expected one or more");
  return pair;
}

// Throws UsageError for an archive of arrays, which np.savez writes and Keras fetches.
void refuse_archive(const std::filesystem::path& path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored) || path.extension() != ".npz") return;
  throw UsageError(
      fmt::format("--data npy:{0}: {0} is an archive of arrays; expected a folder of them; unpack "
                  "it: python3 -m "
                  "zipfile -e '{0}' '{1}', then give --data npy:{1}",
                  path.string(), std::filesystem::path(path).replace_extension().string()));
}

void require_files(const std::filesystem::path& dir) {
  const auto has = [&](const std::string& name) {
    // A link to nothing is no absent file: opening it reports it.
    return std::filesystem::symlink_status(dir / name).type() !=
           std::filesystem::file_type::not_found;
  };
  for (const char* split : {"train", "test", "val"}) {
    const std::string x = fmt::format("x_{}.npy", split);
    const std::string y = fmt::format("y_{}.npy", split);
    const bool may_lack_both = std::string_view(split) == "val";
    if ((has(x) && has(y)) || (may_lack_both && !has(x) && !has(y))) continue;
    throw UsageError(fmt::format(
        "--data npy:{0}: {0} has no {1}; expected x_train.npy, y_train.npy, x_test.npy and "
        "y_test.npy there, and x_val.npy with y_val.npy if there is a validation split",
        dir.string(), has(x) ? y : x));
  }
}

// Returns the number of classes of all splits; 0 if their targets are numbers. Throws FileError if
// the targets of the splits differ in kind or number.
int num_classes_of(std::span<ArrayPair* const> pairs) {
  std::int32_t largest_label = -1;
  const Targets& first = pairs.front()->targets;
  for (const ArrayPair* pair : pairs) {
    const Targets& targets = pair->targets;
    if (targets.numbers_per_sample != first.numbers_per_sample) {
      const auto what = [](const Targets& of) {
        return of.are_numbers() ? fmt::format("{} float32", of.numbers_per_sample)
                                : std::string("an integer");
      };
      throw FileError(fmt::format(
          "{} has {} per sample, and {} has {}; expected targets of one kind: integers as classes, "
          "or float32 as numbers",
          pair->targets_path, what(targets), pairs.front()->targets_path, what(first)));
    }
    for (const std::int32_t label : targets.labels) largest_label = std::max(largest_label, label);
  }
  return largest_label + 1;
}

// Returns the end of a message that the targets are numbers, if they look like classes: whole
// numbers, or one-hot rows.
std::string classes_advice_for(const ArrayPair& pair, const std::filesystem::path& dir) {
  const std::vector<float>& numbers = pair.targets.numbers;
  const auto width = static_cast<std::size_t>(pair.targets.numbers_per_sample);
  bool are_labels = width == 1;
  bool are_one_hot = width > 1;
  for (std::size_t at = 0; at < numbers.size() && (are_labels || are_one_hot); at += width) {
    const auto row = std::span(numbers).subspan(at, width);
    const float first = row.front();
    are_labels =
        are_labels && first == std::trunc(first) && first >= 0.0F && first <= kLargestLabel;
    are_one_hot = are_one_hot && std::ranges::count(row, 1.0F) == 1 &&
                  std::ranges::count(row, 0.0F) == std::ssize(row) - 1;
  }
  if (!are_labels && !are_one_hot) return "";
  const std::string_view expression = are_labels ? "a.astype('int64')" : "a.argmax(1)";
  return fmt::format(
      "; if they are classes{}, save integers: for f in '{}'/y_*.npy; do python3 -c \"import sys, "
      "numpy as np; f = sys.argv[1]; a = np.load(f); np.save(f, {})\" \"$f\"; done",
      are_one_hot ? ", one-hot" : "", dir.string(), expression);
}

}  // namespace

DataSplits open_npy(std::string_view folder, const DataOptions& /*options*/) {
  refuse_archive(folder);
  check_is_folder("npy", folder);
  const std::filesystem::path dir = folder;
  require_files(dir);
  ArrayPair train = open_pair(dir, "train");
  ArrayPair test = open_pair(dir, "test");
  std::vector<ArrayPair*> pairs = {&train, &test};
  ArrayPair validation;
  if (std::filesystem::exists(dir / "x_val.npy")) {
    validation = open_pair(dir, "val");
    pairs.push_back(&validation);
  }

  const DType dtype = dtype_of(*train.samples);
  const Shape shape = sample_shape_of(*train.samples);
  const int classes = num_classes_of(pairs);
  for (const ArrayPair* pair : pairs) {
    const NpyHeader& first = train.samples->header();
    const NpyHeader& other = pair->samples->header();
    if (other.type == first.type && std::ranges::equal(other.shape.begin() + 1, other.shape.end(),
                                                       first.shape.begin() + 1, first.shape.end()))
      continue;
    throw FileError(
        fmt::format("{} is {} of {}, and {} is {} of {}; expected samples of one shape "
                    "and type",
                    pair->samples->path(), to_string(other.shape), numpy_name(other.type),
                    train.samples->path(), to_string(first.shape), numpy_name(first.type)));
  }
  const std::string classes_advice = classes_advice_for(train, dir);
  warn_about_empty_classes(train.targets.labels, classes, (dir / "y_train.npy").string());
  const auto make_split = [&](ArrayPair& pair) {
    SampleSpec spec = pair.targets.spec_of(shape, dtype, classes);
    return std::make_unique<NpyDataset>(pair.samples, std::move(pair.targets), std::move(spec));
  };
  DataSplits splits{.name = "npy", .train = make_split(train), .test = make_split(test)};
  splits.classes_advice = classes_advice;
  if (validation.samples != nullptr) splits.validation = make_split(validation);
  set_value_statistics(splits);
  return splits;
}

}  // namespace syncopate
