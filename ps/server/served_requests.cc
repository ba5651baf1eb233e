#include "ps/server/served_requests.h"

namespace syncopate::ps {

std::size_t ServedRequests::Hash::operator()(const PushName& name) const noexcept {
  // Multiplies by odd numbers, so that names that differ in one field differ in the sum.
  return static_cast<std::size_t>(name.worker) * 0x9e3779b97f4a7c15U +
         static_cast<std::size_t>(name.bucket) * 0xc2b2ae3d27d4eb4fU +
         static_cast<std::size_t>(name.sequence) * 0x165667b19e3779f9U + name.incarnation;
}

ServedRequest& ServedRequests::add(std::uint64_t token, WorkerId worker, std::uint32_t incarnation,
                                   int bucket, const wire::PushT& push) {
  ServedRequest& request = by_token_[token];
  request.worker = worker;
  request.incarnation = incarnation;
  request.bucket = bucket;
  request.push = push;
  if (push.sequence > 0) pushes_.insert({worker, incarnation, bucket, push.sequence});
  return request;
}

ServedRequest* ServedRequests::find(std::uint64_t token) {
  const auto found = by_token_.find(token);
  return found == by_token_.end() ? nullptr : &found->second;
}

void ServedRequests::erase(std::uint64_t token) {
  const auto found = by_token_.find(token);
  if (found == by_token_.end()) return;
  const ServedRequest& request = found->second;
  const auto name =
      pushes_.find({request.worker, request.incarnation, request.bucket, request.push.sequence});
  if (name != pushes_.end()) pushes_.erase(name);
  by_token_.erase(found);
}

bool ServedRequests::has_push(WorkerId worker, std::uint32_t incarnation, int bucket,
                              std::uint64_t sequence) const {
  return pushes_.contains({worker, incarnation, bucket, sequence});
}

}  // namespace syncopate::ps
