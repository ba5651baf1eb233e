#include "ps/net/segment.h"

#include <poll.h>
#include <pthread.h>

#include <utility>

#include "models/base/errors.h"
#include "ps/net/connection.h"
#include "ps/net/descriptor_passing.h"
#include "ps/net/segment_desk.h"
#include "ps/net/segment_memory.h"

namespace syncopate::ps {

SegmentOwner::SegmentOwner(std::int64_t elements, const std::string& nonce,
                           std::chrono::nanoseconds patience)
    : name_(random_socket_name()), memory_(make_segment_memory(elements)) {
  MappedSegment segment = map_own_segment(memory_.get(), elements, nonce);
  values_ = std::move(segment.values);
  gradients_ = std::move(segment.gradients);
  // Listens before anybody can know the name.
  SegmentDesk desk(listen_at_name(name_), memory_.get(), nonce, patience);
  thread_ = std::jthread([desk = std::move(desk)](const std::stop_token& stop) mutable {
    pthread_setname_np(pthread_self(), "ps-segment");
    desk.serve(stop);
  });
}

SegmentOwner::~SegmentOwner() = default;

std::optional<MappedSegment> map_segment(const std::string& name, const std::string& nonce,
                                         std::int64_t elements, const Deadline& deadline) {
  const std::string owner = "the worker at socket '" + name + "'";
  FileDescriptor socket = call_name(name);
  if (!socket) return std::nullopt;
  FileDescriptor memory;
  try {
    Connection worker(std::move(socket), owner);
    worker.send({kSegmentRequest, nonce}, deadline);
    if (!wait_ready(worker.descriptor(), POLLIN, deadline)) return std::nullopt;
    memory = receive_descriptor(worker.descriptor(), owner);
  } catch (const PeerError&) {
    return std::nullopt;  // it has ended
  }
  if (!memory) {
    throw UsageError("shared memory: " + owner +
                     " is of another job: it does not know this one's nonce; is an old worker "
                     "still running?");
  }
  return map_foreign_segment(memory.get(), elements, nonce, owner);
}

}  // namespace syncopate::ps
