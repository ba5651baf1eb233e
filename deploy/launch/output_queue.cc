#include "deploy/launch/output_queue.h"

#include "models/base/bounded_write.h"

namespace syncopate {

void OutputQueue::add(std::string_view lines) {
  if (has_failed_) return;
  kept_ += lines;
  write_kept();
}

void OutputQueue::write_kept(std::chrono::milliseconds timeout) {
  const Written written = write_within(descriptor_, kept_, timeout);
  has_failed_ = has_failed_ || written.error != 0;
  kept_.erase(0, has_failed_ ? std::string::npos : written.bytes);
}

}  // namespace syncopate
