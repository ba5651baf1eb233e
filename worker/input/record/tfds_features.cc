// Reads features.json, in which TensorFlow Datasets describes the features of a record.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "models/base/errors.h"
#include "worker/input/array/class_labels.h"
#include "worker/input/record/json_text.h"

namespace syncopate {
namespace {

// The type and content of a feature, in one form for all versions of features.json.
struct WrittenType {
  std::string name;
  nlohmann::json content;
  bool is_message = false;  // the content has the fields of a message of feature.proto
};

// Source: tensorflow_datasets/core/features/feature.py of version 4.9, from_json() and
// from_proto(), which read all forms: {"pythonClassName", "featuresDict" or "classLabel"}, the same
// with "jsonFeature", and {"type", "content"}, which early versions wrote.
WrittenType type_of(const nlohmann::json& feature) {
  const bool is_early = feature.contains("type");
  const auto name = feature.value(is_early ? "type" : "pythonClassName", std::string());
  WrittenType type{.name = name.substr(name.rfind('.') + 1), .content = nlohmann::json::object()};
  if (is_early) {
    type.content = feature.at("content");
    type.is_message = feature.contains("proto_cls");
    if (type.content.is_string())
      type.content = nlohmann::json::parse(type.content.get<std::string>());
  } else if (feature.contains("jsonFeature")) {
    type.content = nlohmann::json::parse(feature.at("jsonFeature").at("json").get<std::string>());
  } else {
    type.is_message = true;
    for (const char* const key : {"featuresDict", "classLabel"}) {
      if (feature.contains(key)) type.content = feature.at(key);
    }
  }
  return type;
}

bool is_dictionary(const WrittenType& type) { return type.name == "FeaturesDict"; }

// path: of features.json. prefix: "outer/" of a nested dictionary.
void list_features(const std::filesystem::path& path, const WrittenType& dictionary,
                   const std::string& prefix, std::vector<TfdsFeature>& listed) {
  const nlohmann::json& features =
      dictionary.is_message ? dictionary.content.at("features") : dictionary.content;
  for (const auto& [key, feature] : features.items()) {
    const WrittenType type = type_of(feature);
    const std::string name = prefix + key;
    if (is_dictionary(type)) {
      list_features(path, type, name + "/", listed);
      continue;
    }
    TfdsFeature entry{.name = name, .type = type.name};
    const char* const key_of_count = type.is_message ? "numClasses" : "num_classes";
    if (type.name == "ClassLabel" && type.content.contains(key_of_count) &&
        !type.content.at(key_of_count).is_null()) {
      entry.num_classes =
          count_of(type.content.at(key_of_count), std::int64_t{kLargestLabel} + 1,
                   fmt::format("{}: {} of feature {}", path.string(), key_of_count, name));
    }
    listed.push_back(std::move(entry));
  }
}

}  // namespace

std::vector<TfdsFeature> read_tfds_features(const std::filesystem::path& path) {
  std::vector<TfdsFeature> listed;
  read_json(path, kTfdsWriter, [&](const nlohmann::json& text) {
    const WrittenType whole = type_of(text);
    if (!is_dictionary(whole)) {
      throw FileError(
          fmt::format("{}: not as {} writes it: it is no dictionary of features; fetch "
                      "the file again",
                      path.string(), kTfdsWriter));
    }
    list_features(path, whole, "", listed);
  });
  return listed;
}

}  // namespace syncopate
