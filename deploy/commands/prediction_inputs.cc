#include "deploy/commands/prediction_inputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <numeric>
#include <string_view>
#include <system_error>
#include <utility>

#include "models/base/errors.h"
#include "worker/input/array/byte_stream.h"
#include "worker/input/array/csv_table.h"
#include "worker/input/array/npy_file.h"
#include "worker/input/image/image_decoder.h"

namespace syncopate {
namespace {

constexpr std::array<std::string_view, 3> kTableNames = {".csv", ".csv.gz", ".csv.zst"};

const InputOp& operation_of(const Node& input) { return std::get<InputOp>(input.operation); }

bool reads_pictures(const Node& input) {
  return input.shape.size() == 3 && (input.shape[2] == 1 || input.shape[2] == 3) &&
         operation_of(input).dtype == DType::kU8;
}

class ArrayInput final : public PredictionInput {
 public:
  ArrayInput(const std::string& path, const Node& input) : file_(path) {
    const Shape& wanted = input.shape;
    Shape shape = file_.header().shape;
    const std::string type = operation_of(input).dtype == DType::kU8    ? "u1"
                             : operation_of(input).dtype == DType::kU16 ? "u2"
                                                                        : "f4";
    const auto fits = [&](const Shape& sample) {
      Shape with_channel = sample;
      with_channel.push_back(1);
      return sample == wanted || with_channel == wanted;
    };
    is_one_ = fits(shape);
    if (!is_one_) shape.erase(shape.begin());
    if (!fits(shape) || file_.header().type != type) {
      throw UsageError(fmt::format(
          "{}: found an array {} of {}; the network reads samples {} of {}; give an array of one "
          "such sample, or of several, stacked along the first axis",
          path, to_string(file_.header().shape), numpy_name(file_.header().type), to_string(wanted),
          numpy_name(type)));
    }
  }

  std::int64_t size() const noexcept override { return is_one_ ? 1 : file_.num_rows(); }
  bool has_rows() const noexcept override { return !is_one_; }
  void read(std::int64_t index, std::span<std::byte> sample) override {
    file_.read(is_one_ ? 0 : index, sample);
    if (file_.header().type != "f4") return;
    for (std::size_t at = 0; at < sample.size(); at += sizeof(float)) {
      float value = 0.0F;
      std::memcpy(&value, sample.data() + at, sizeof value);
      if (!std::isfinite(value)) {
        throw FileError(fmt::format("{}: sample {} has the value {}; expected finite numbers",
                                    file_.path(), index, value));
      }
    }
  }

 private:
  const NpyFile file_;
  bool is_one_ = false;  // the file is one sample, not several
};

class CsvInput final : public PredictionInput {
 public:
  CsvInput(const std::string& path, const InputForm& form) {
    const Node& input = form.input;
    if (input.shape.size() != 1 || operation_of(input).dtype != DType::kF32) {
      throw UsageError(
          fmt::format("{}: the network reads {} {} and no tables; give {}", path,
                      name(operation_of(input).dtype), to_string(input.shape),
                      reads_pictures(input) ? "pictures or .npy files" : ".npy files"));
    }
    CsvColumns trained;
    if (!form.table_columns.empty()) {
      trained = parse_csv_columns(form.table_columns);
    } else {
      trained.count = static_cast<std::size_t>(input.shape[0]);
      trained.features.resize(trained.count);
      std::iota(trained.features.begin(), trained.features.end(), std::size_t{0});
    }
    table_ = read_csv_features(*open_byte_stream(path), path, trained);
    if (table_.num_features != input.shape[0]) {
      throw UsageError(fmt::format("{}: found {} columns to predict from; the network reads {}",
                                   path, table_.num_features, input.shape[0]));
    }
  }

  std::int64_t size() const noexcept override {
    return static_cast<std::int64_t>(table_.features.size()) / table_.num_features;
  }
  bool has_rows() const noexcept override { return true; }
  void read(std::int64_t index, std::span<std::byte> sample) override {
    const auto count = static_cast<std::size_t>(table_.num_features);
    const auto row =
        std::span(table_.features).subspan(static_cast<std::size_t>(index) * count, count);
    std::ranges::copy(std::as_bytes(row), sample.begin());
  }

 private:
  CsvTable table_;
};

class PictureInput final : public PredictionInput {
 public:
  PictureInput(std::string path, const Node& input, bool apply_exif)
      : path_(std::move(path)), shape_(input.shape), apply_exif_(apply_exif) {
    if (!reads_pictures(input)) {
      throw UsageError(fmt::format("{}: the network reads {} {} and no pictures; give .npy files{}",
                                   path_, name(operation_of(input).dtype), to_string(shape_),
                                   shape_.size() == 1 ? " or tables (.csv)" : ""));
    }
  }

  std::int64_t size() const noexcept override { return 1; }
  void read(std::int64_t /*index*/, std::span<std::byte> sample) override {
    const std::vector<char> file = read_file();
    try {
      decode(std::as_bytes(std::span(file)), sample);
    } catch (const FileError& error) {
      throw FileError(fmt::format("{}; leave this picture out, or replace it", error.what()));
    }
  }

 private:
  void decode(std::span<const std::byte> file, std::span<std::byte> sample) const {
    decode_image(file, path_, read_image_header(file, path_),
                 {.width = shape_[1],
                  .height = shape_[0],
                  .channels = static_cast<int>(shape_[2]),
                  .apply_exif = apply_exif_},
                 {reinterpret_cast<std::uint8_t*>(sample.data()), sample.size()});
  }

  // The size is counted while reading, because a pipe has none.
  std::vector<char> read_file() const {
    std::ifstream stream(path_, std::ios::binary);
    std::vector<char> file;
    std::vector<char> part(std::size_t{1} << 16);
    while (stream) {
      stream.read(part.data(), static_cast<std::streamsize>(part.size()));
      file.insert(file.end(), part.begin(), part.begin() + stream.gcount());
      if (std::ssize(file) > kMaxImageBytes) {
        throw FileError(fmt::format("{}: expected a picture of at most {} MB, found more", path_,
                                    kMaxImageBytes >> 20));
      }
    }
    if (!stream.eof()) throw FileError(describe_errno("read", path_, errno));
    return file;
  }

  const std::string path_;
  const Shape shape_;
  const bool apply_exif_;
};

}  // namespace

std::unique_ptr<PredictionInput> open_prediction_input(const std::string& path,
                                                       const InputForm& form) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    throw UsageError(fmt::format("{} is a folder; name its files, such as {}/*", path, path));
  }
  if (path.ends_with(".npy")) return std::make_unique<ArrayInput>(path, form.input);
  const bool is_table =
      std::ranges::any_of(kTableNames, [&](std::string_view end) { return path.ends_with(end); });
  if (is_table || !form.table_columns.empty()) return std::make_unique<CsvInput>(path, form);
  return std::make_unique<PictureInput>(path, form.input, form.apply_exif);
}

}  // namespace syncopate
