// Takes the place of the event files of TensorBoard in a build without protobuf.
#include "models/base/errors.h"
#include "worker/train/tensorboard.h"

namespace syncopate {
namespace {

[[noreturn]] void throw_no_protobuf() {
  throw UnavailableError(
      "--tensorboard needs protobuf, and this build has none; install libprotobuf-dev and "
      "protobuf-compiler, and build again");
}

}  // namespace

std::unique_ptr<MetricsWriter> make_tensorboard_writer(const std::filesystem::path& /*folder*/,
                                                       CurveWriter /*which*/) {
  throw_no_protobuf();
}

void add_confusion_image(const std::filesystem::path& /*folder*/, std::int64_t /*step*/,
                         const ConfusionMatrix& /*confusion*/) {
  throw_no_protobuf();
}

}  // namespace syncopate
