// Provides the data service of one server, and a worker that sends single messages to it.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ps/server/data_service.h"
#include "ps/wire/zmq_socket.h"
#include "tests/ps/server/served_job.h"
#include "tests/ps/wire/socket_case.h"

namespace syncopate::ps::testing {

// A WorkerConnection is a worker's connection to the data service. Its messages have the token of
// the last DataWelcome that it received.
class WorkerConnection {
 public:
  WorkerConnection(wire::Context& context, std::uint16_t port,
                   const std::string& nonce = JobShape().nonce)
      : socket_(wire::Socket::connect(context, {"127.0.0.1", port}, {.nonce = nonce})) {}

  template <typename BodyT>
  void send(BodyT body, const std::vector<float>& frame = {}) {
    wire::MessageT header = wire::make_message(std::move(body));
    header.session = session;
    wire::Envelope message = envelope("", header);
    if (!frame.empty()) {
      message.frames.push_back(wire::copied_frame(std::as_bytes(std::span(frame))));
    }
    socket_->send(std::move(message));
  }
  // Returns the next message, which must have this type and this number of frames after the header.
  template <typename BodyT>
  BodyT receive(std::size_t frames = 0) {
    const wire::Envelope message = wire::await_message(*socket_, {});
    if (message.frames.empty()) return {};
    auto decoded = wire::decode(wire::bytes_in(message.frames.front()));
    const auto* const body = decoded->body.type == wire::BodyUnionTraits<BodyT>::enum_value
                                 ? static_cast<const BodyT*>(decoded->body.value)
                                 : nullptr;
    EXPECT_NE(body, nullptr) << "it is " << wire::name_of(*decoded);
    EXPECT_EQ(message.frames.size(), 1 + frames);
    if (const auto* const welcome = decoded->body.AsDataWelcome()) session = welcome->session;
    return body == nullptr ? BodyT() : BodyT(*body);
  }
  // Returns whether no message has arrived.
  bool has_received_nothing() { return !socket_->receive(); }

  std::uint64_t session = 0;

 private:
  std::unique_ptr<wire::Socket> socket_;
};

struct DataServiceCase {
  explicit DataServiceCase(const JobShape& shape);

  WorkerConnection connect() { return {context, data.port()}; }
  // Returns the connection of a worker that was welcomed.
  WorkerConnection welcomed(const wire::DataHelloT& hello);
  // Waits for this number of ended steps and returns them.
  std::vector<EndedStep> await_steps(std::size_t count);

  wire::Context context;
  std::shared_ptr<ServedVariables> served;
  DataService data;
};

wire::DataHelloT hello_of(WorkerId worker, std::uint32_t incarnation,
                          const std::string& segment = "");
// Returns a push of bucket 0, which is the only bucket, so that the push ends the step.
wire::PushT push_of(std::uint64_t sequence, std::uint64_t version);
wire::PullT pull_of(std::vector<int> buckets);

}  // namespace syncopate::ps::testing
