// What is in a frame: for those who call ZeroMQ.
#pragma once

#include <zmq.h>

#include "ps/wire/frame.h"

namespace syncopate::ps::wire {

struct Frame::Content {
  Content() noexcept { zmq_msg_init(&message); }
  Content(const Content&) = delete;
  Content& operator=(const Content&) = delete;
  // Whoever sent the message closed it: then it is an empty one.
  ~Content() { zmq_msg_close(&message); }

  zmq_msg_t message;
};

}  // namespace syncopate::ps::wire
