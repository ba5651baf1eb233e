#include "ps/sync_rule.h"

#include <string>

#include "models/base/errors.h"

namespace syncopate {

SyncRule::SyncRule(BucketId bucket, int workers)
    : bucket_(bucket), gradients_(static_cast<std::size_t>(workers)) {}

bool SyncRule::push(int worker, std::uint64_t version, std::span<const float> gradient) {
  const auto what = [&] {
    return "push of bucket " + std::to_string(bucket_) + " by worker " + std::to_string(worker);
  };
  if (worker < 0 || worker >= static_cast<int>(gradients_.size())) {
    throw InternalError(what() + ": expected a worker in [0, " + std::to_string(gradients_.size()) +
                        ")");
  }
  if (version != version_) {
    throw InternalError(what() + ": its gradient is of version " + std::to_string(version) +
                        ", expected the current one, " + std::to_string(version_) +
                        "; read the values before each step");
  }
  std::span<const float>& place = gradients_[static_cast<std::size_t>(worker)];
  if (place.data() != nullptr) {
    throw InternalError(what() + ": its gradient of version " + std::to_string(version) +
                        " is there already, expected one push per version");
  }
  place = gradient;
  ++arrived_;
  return due();
}

void SyncRule::advance() noexcept {
  ++version_;
  arrived_ = 0;
  for (std::span<const float>& gradient : gradients_) gradient = {};
}

}  // namespace syncopate
