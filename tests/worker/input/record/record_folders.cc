#include "tests/worker/input/record/record_folders.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <sstream>

#include "tests/worker/input/image/encoded_samples.h"
#include "worker/input/record/stored_tensor.h"

namespace syncopate {
namespace {

std::string five_digits(std::size_t number) {
  std::string text = std::to_string(number);
  return std::string(5 - text.size(), '0') + text;
}

template <typename T>
Bytes tensor_of(StoredType type, const Shape& shape, const std::vector<T>& values) {
  StoredTensor tensor{
      .type = type, .shape = shape, .elements = std::string(sizeof(T) * values.size(), '\0')};
  std::memcpy(tensor.elements.data(), values.data(), tensor.elements.size());
  return as_u8(serialize_tensor(tensor));
}

Bytes patch_record(int n, const OtbtfForm& form) {
  const Patch patch = patch_of(n, form);
  std::vector<float> f32(patch.values.size());
  std::ranges::transform(patch.values, f32.begin(),
                         [](std::uint16_t value) { return 0.0001F * static_cast<float>(value); });
  const Shape shape = {form.side, form.side, form.channels};
  const Bytes values = form.is_float ? tensor_of(StoredType::kF32, shape, f32)
                                     : tensor_of(StoredType::kU16, shape, patch.values);
  const int label_side = form.label_side > 0 ? form.label_side : form.side;
  std::vector<std::int32_t> labels = patch.labels;
  labels.resize(static_cast<std::size_t>(label_side) * static_cast<std::size_t>(label_side));
  const Bytes map = tensor_of(StoredType::kI32, {label_side, label_side, 1}, labels);
  const std::array<WrittenFeature, 2> features = {
      {{.name = "xs", .bytes = std::as_bytes(std::span(values))},
       {.name = "labels", .bytes = std::as_bytes(std::span(map))}}};
  return as_u8(serialize_example(features));
}

// A record of Cassava: a JPEG of a size of its own, its file name and its class.
Bytes jpeg_record(int n) {
  const FileBytes jpeg =
      make_jpeg(make_picture(40 + n % 5, 30 + n % 3, 3, static_cast<unsigned>(n)));
  const std::string name = "train-" + std::to_string(n) + ".jpg";
  const std::vector<WrittenFeature> features = {
      {.name = "image", .bytes = jpeg},
      {.name = "image/filename", .bytes = std::as_bytes(std::span(name))},
      {.name = "label", .integer = n % 3}};
  return as_u8(serialize_example(features));
}

}  // namespace

void write_text(const std::filesystem::path& path, const std::string& text) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path) << text;
}

Bytes picture_of(int n) {
  return as_u8(make_png(make_picture(14, 14, 3, static_cast<unsigned>(n))));
}

void write_tfds(const std::filesystem::path& folder, const std::vector<TfdsSplitForm>& splits,
                const std::string& format, TfdsPictures pictures) {
  std::string listed;
  for (const TfdsSplitForm& split : splits) {
    std::string lengths;
    int number = 0;
    for (std::size_t shard = 0; shard < split.shard_lengths.size(); ++shard) {
      std::vector<Bytes> records;
      for (int i = 0; i < split.shard_lengths[shard]; ++i, ++number) {
        records.push_back(pictures == TfdsPictures::kJpeg
                              ? jpeg_record(number)
                              : labelled_record(picture_of(number), number % 3));
      }
      const std::string name = "tiny-" + split.name + ".tfrecord-" + five_digits(shard) + "-of-" +
                               five_digits(split.shard_lengths.size());
      write_text(folder / name, "");
      write_file(folder / name, record_bytes(records));
      lengths +=
          (lengths.empty() ? "\"" : ", \"") + std::to_string(split.shard_lengths[shard]) + "\"";
    }
    listed +=
        (listed.empty() ? "" : ", ") +
        (R"({"filepathTemplate": "{DATASET}-{SPLIT}.{FILEFORMAT}-{SHARD_X_OF_Y}", "name": ")" +
         split.name + R"(", "numBytes": "1", "shardLengths": [)" + lengths + "]}");
  }
  write_text(folder / "dataset_info.json",
             R"({"name": "tiny", "version": "1.0.0", "fileFormat": ")" + format +
                 R"(", "splits": [)" + listed + "]}");
  write_text(folder / "features.json", R"({
    "pythonClassName": "tensorflow_datasets.core.features.features_dict.FeaturesDict",
    "featuresDict": {"features": {
      "image": {"pythonClassName": "tensorflow_datasets.core.features.image_feature.Image",
                "image": {"shape": {"dimensions": ["-1", "-1", "3"]}, "encodingFormat": "png"}},
      "label": {"pythonClassName": "tensorflow_datasets.core.features.class_label_feature.ClassLabel",
                "classLabel": {"numClasses": "3"}}}}})");
  write_text(folder / "label.labels.txt", "ant\nbee\ncat\n");
}

Patch patch_of(int n, const OtbtfForm& form) {
  Patch patch;
  for (int p = 0; p < form.side * form.side; ++p) {
    const bool is_inside = (p / form.side + n) % form.side < form.side / 2;
    patch.labels.push_back(p < form.num_uncounted ? 255 : is_inside ? 1 : 0);
    for (int c = 0; c < form.channels; ++c) {
      const int value = (is_inside ? 3000 : 500) + 7 * p % 90 + 11 * n + c;
      patch.values.push_back(static_cast<std::uint16_t>(value));
    }
  }
  return patch;
}

void write_otbtf(const std::filesystem::path& folder, const OtbtfForm& form) {
  int number = 0;
  for (const auto& [split, count] :
       {std::pair("train", form.train), {"valid", form.valid}, {"test", form.test}}) {
    if (count == 0) continue;
    std::vector<Bytes> records;
    records.reserve(static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i) records.push_back(patch_record(number++, form));
    const std::filesystem::path path = folder / split;
    write_text(path / "output_types.json", form.is_float
                                               ? R"({"xs": "float32", "labels": "int32"})"
                                               : R"({"xs": "uint16", "labels": "int32"})");
    // Some versions write the extent of the batch, as null.
    std::ostringstream shapes;
    shapes << R"({"xs": [null, )" << form.side << ", " << form.side << ", " << form.channels
           << R"(], "labels": [)" << form.side << ", " << form.side << ", 1]}";
    write_text(path / "output_shape.json", shapes.str());
    write_file(path / "0.records", record_bytes(records));
  }
}

}  // namespace syncopate
