// Takes the place of the data sets of TFRecord files in a build without protobuf.
#include <fmt/format.h>

#include "models/base/errors.h"
#include "worker/input/dataset.h"
#include "worker/input/record/example.h"

namespace syncopate {

void require_records(std::string_view what) {
  throw UnavailableError(
      fmt::format("{} needs protobuf, and this build has none; install libprotobuf-dev and "
                  "protobuf-compiler, and build again",
                  what));
}

std::string protobuf_version() {
  return "none: tfds:, tfrecord:, otbtf:, convert, export --onnx and --tensorboard need it; "
         "install libprotobuf-dev and protobuf-compiler, and build again";
}

DataSplits open_tfds(std::string_view /*folder*/, const DataOptions& /*options*/) {
  require_records("--data tfds:DIR");
  return {};
}
DataSplits open_tfrecord(std::string_view /*globs*/, const DataOptions& /*options*/) {
  require_records("--data tfrecord:GLOB");
  return {};
}
DataSplits open_otbtf(std::string_view /*folder*/, const DataOptions& /*options*/) {
  require_records("--data otbtf:DIR");
  return {};
}
std::vector<std::byte> serialize_example(std::span<const WrittenFeature> /*features*/) {
  require_records("convert --to tfrecord");
  return {};
}

}  // namespace syncopate
