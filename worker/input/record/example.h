// Parses and serializes tf.train.Example, the message in a record. It has named features, each of
// which is a list of byte strings, of floats or of integers. Protobuf parses the message.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace syncopate {

// With the numbers of the field `kind` in example.proto.
enum class FeatureKind : std::uint8_t { kEmpty, kBytes, kFloats, kIntegers };
// Returns TensorFlow's name of the kind, "bytes", "float" or "int64"; "nothing" for kEmpty.
std::string_view name(FeatureKind kind) noexcept;

// A feature, which is valid as long as its example lives. Only the member of its kind has values.
struct Feature {
  FeatureKind kind = FeatureKind::kEmpty;
  std::size_t count = 0;             // number of values in the list
  std::span<const std::byte> bytes;  // the first value of kBytes
  std::span<const float> floats;
  std::span<const std::int64_t> integers;
};

// Finds the features in a parsed tf.train.Example. One thread only.
class Example {
 public:
  // Parses a record; returns nullopt if the record is not a serialized Example. Skips fields that
  // newer versions of TensorFlow have added.
  static std::optional<Example> parse(std::span<const std::byte> record);

  Example(Example&& other) noexcept;
  Example& operator=(Example&& other) noexcept;
  ~Example();

  // Returns the feature with this name, which is valid as long as the example lives; nullopt if
  // there is none.
  std::optional<Feature> find(const std::string& name) const;
  // Returns the names and kinds of all features, sorted by name, for messages: "image (bytes),
  // label (int64)".
  std::string describe() const;

 private:
  struct Message;
  explicit Example(std::unique_ptr<Message> message) noexcept;

  std::unique_ptr<Message> message_;
};

// A feature to be written, which has one byte string or one integer.
struct WrittenFeature {
  std::string name;
  std::optional<std::span<const std::byte>> bytes = std::nullopt;
  std::int64_t integer = 0;  // used if `bytes` is nullopt
};

// Serializes an Example with these features, for a record.
std::vector<std::byte> serialize_example(std::span<const WrittenFeature> features);

// Throws UnavailableError naming `what` if this build cannot read records.
void require_records(std::string_view what);

// Returns the version of protobuf; in a build without protobuf, "none: " followed by what the build
// lacks.
std::string protobuf_version();

}  // namespace syncopate
