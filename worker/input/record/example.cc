#include "worker/input/record/example.h"

#include <fmt/format.h>
#include <google/protobuf/stubs/common.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <utility>

#include "models/base/errors.h"
#include "worker/input/pictures/image_folder.h"
#include "worker/input/record/proto/example.pb.h"

namespace syncopate {
namespace {

FeatureKind kind_of(const proto::Feature& feature) {
  return static_cast<FeatureKind>(feature.kind_case());
}

}  // namespace

std::string protobuf_version() {
  constexpr int kMajor = GOOGLE_PROTOBUF_VERSION / 1'000'000;
  constexpr int kMinor = GOOGLE_PROTOBUF_VERSION / 1'000 % 1'000;
  return fmt::format("{}.{}.{}", kMajor, kMinor, GOOGLE_PROTOBUF_VERSION % 1'000);
}

std::string_view name(FeatureKind kind) noexcept {
  constexpr std::array<std::string_view, 4> kNames = {"nothing", "bytes", "float", "int64"};
  return kNames[static_cast<std::size_t>(kind)];
}

struct Example::Message {
  proto::Example example;
};

Example::Example(std::unique_ptr<Message> message) noexcept : message_(std::move(message)) {}
Example::Example(Example&& other) noexcept = default;
Example& Example::operator=(Example&& other) noexcept = default;
Example::~Example() = default;

std::optional<Example> Example::parse(std::span<const std::byte> record) {
  if (record.size() > std::numeric_limits<int>::max()) return std::nullopt;  // protobuf's limit
  auto message = std::make_unique<Message>();
  if (!message->example.ParseFromArray(record.data(), static_cast<int>(record.size()))) {
    return std::nullopt;
  }
  return Example(std::move(message));
}

std::optional<Feature> Example::find(const std::string& name) const {
  const auto& features = message_->example.features().feature();
  // Of equal names the last counts, as in protobuf's maps.
  const auto found = std::find_if(features.rbegin(), features.rend(),
                                  [&](const auto& each) { return each.key() == name; });
  if (found == features.rend()) return std::nullopt;
  const proto::Feature& feature = found->value();
  Feature result{.kind = kind_of(feature)};
  if (result.kind == FeatureKind::kBytes) {
    const auto& values = feature.bytes_list().value();
    result.count = static_cast<std::size_t>(values.size());
    if (!values.empty()) result.bytes = std::as_bytes(std::span(values.Get(0)));
  } else if (result.kind == FeatureKind::kFloats) {
    const auto& values = feature.float_list().value();
    result.count = static_cast<std::size_t>(values.size());
    result.floats = {values.data(), result.count};
  } else if (result.kind == FeatureKind::kIntegers) {
    const auto& values = feature.int64_list().value();
    result.count = static_cast<std::size_t>(values.size());
    result.integers = {values.data(), result.count};
  }
  return result;
}

std::string Example::describe() const {
  const auto& features = message_->example.features().feature();
  std::map<std::string, FeatureKind> sorted;
  for (const auto& each : features) sorted[printable(each.key())] = kind_of(each.value());
  std::string text;
  for (const auto& [key, kind] : sorted) {
    text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", key, syncopate::name(kind));
  }
  return text.empty() ? "no features" : text;
}

void require_records(std::string_view /*what*/) {}

std::vector<std::byte> serialize_example(std::span<const WrittenFeature> features) {
  proto::Example example;
  for (const WrittenFeature& feature : features) {
    proto::NamedFeature& named = *example.mutable_features()->add_feature();
    named.set_key(feature.name);
    if (feature.bytes) {
      named.mutable_value()->mutable_bytes_list()->add_value(feature.bytes->data(),
                                                             feature.bytes->size());
    } else {
      named.mutable_value()->mutable_int64_list()->add_value(feature.integer);
    }
  }
  std::vector<std::byte> record(example.ByteSizeLong());
  check(record.size() <= std::numeric_limits<int>::max() &&
            example.SerializeToArray(record.data(), static_cast<int>(record.size())),
        "an Example is smaller than 2 GiB");
  return record;
}

}  // namespace syncopate
