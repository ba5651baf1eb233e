// Takes the place of the event files of TensorBoard in a build without protobuf.
#include "models/base/errors.h"
#include "worker/train/tensorboard.h"

namespace syncopate {

void require_tensorboard() {
  throw UnavailableError(
      "--tensorboard needs protobuf, and this build has none; install libprotobuf-dev and "
      "protobuf-compiler, and build again");
}

std::unique_ptr<MetricsWriter> make_tensorboard_writer(const std::filesystem::path& /*folder*/,
                                                       CurveWriter /*which*/) {
  require_tensorboard();
  return nullptr;
}

FileDescriptor claim_curves(const std::filesystem::path& /*folder*/) {
  require_tensorboard();
  return {};
}

void add_confusion_image(const std::filesystem::path& /*folder*/, std::int64_t /*step*/,
                         const ConfusionMatrix& /*confusion*/) {
  require_tensorboard();
}

}  // namespace syncopate
