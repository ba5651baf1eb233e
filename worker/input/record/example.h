// tf.train.Example, the message in a record: named features, each a list of byte strings, of floats
// or of integers. The parser is protobuf's.
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

enum class FeatureKind : std::uint8_t { kEmpty, kBytes, kFloats, kIntegers };
// Returns "bytes", "float", "int64" or "nothing", as TensorFlow calls the lists.
std::string_view name(FeatureKind kind) noexcept;

// A feature; valid as long as its example. The list of its kind has values, the others none.
struct Feature {
  FeatureKind kind = FeatureKind::kEmpty;
  std::size_t count = 0;             // of values
  std::span<const std::byte> bytes;  // the first value of kBytes
  std::span<const float> floats;
  std::span<const std::int64_t> integers;
};

// One thread only.
class Example {
 public:
  // Parses a record; returns nothing if it is no serialized Example. Features that TensorFlow has
  // added since are skipped.
  static std::optional<Example> parse(std::span<const std::byte> record);

  Example(Example&& other) noexcept;
  Example& operator=(Example&& other) noexcept;
  ~Example();

  // Returns the feature of this name, which lives as long as the example; nothing: there is none.
  std::optional<Feature> find(const std::string& name) const;
  // Returns the features in the order of their names, for messages: "image (bytes), label (int64)".
  std::string describe() const;

 private:
  struct Message;
  explicit Example(std::unique_ptr<Message> message) noexcept;

  std::unique_ptr<Message> message_;
};

// A feature to be written: one byte string or one integer.
struct WrittenFeature {
  std::string name;
  std::optional<std::span<const std::byte>> bytes = std::nullopt;
  std::int64_t integer = 0;  // without `bytes`
};

// Returns an Example with these features, as it stands in a record.
std::vector<std::byte> serialize_example(std::span<const WrittenFeature> features);

// Throws UnavailableError, which names `what`, if this build cannot read records.
void require_records(std::string_view what);

// Returns the version of protobuf; in a build without it "none: " and what the build lacks.
std::string protobuf_version();

}  // namespace syncopate
