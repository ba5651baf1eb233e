// Takes the place of the data sets of TFRecord files in a build without protobuf.
#include <fmt/format.h>

#include "models/base/errors.h"
#include "worker/input/dataset.h"
#include "worker/input/record/example.h"

namespace syncopate {
namespace {

[[noreturn]] void throw_no_protobuf(std::string_view what) {
  throw UnavailableError(
      fmt::format("{} needs protobuf, and this build has none; install libprotobuf-dev and "
                  "protobuf-compiler, and build again",
                  what));
}

}  // namespace

DataSplits open_tfds(std::string_view /*folder*/, const DataOptions& /*options*/) {
  throw_no_protobuf("--data tfds:DIR");
}
DataSplits open_tfrecord(std::string_view /*globs*/, const DataOptions& /*options*/) {
  throw_no_protobuf("--data tfrecord:GLOB");
}
DataSplits open_otbtf(std::string_view /*folder*/, const DataOptions& /*options*/) {
  throw_no_protobuf("--data otbtf:DIR");
}
std::vector<std::byte> serialize_example(std::span<const WrittenFeature> /*features*/) {
  throw_no_protobuf("convert --to tfrecord");
}

}  // namespace syncopate
