#include "tests/ps/server/data_service_case.h"

#include <poll.h>

#include "models/base/deadline.h"

namespace syncopate::ps::testing {

DataServiceCase::DataServiceCase(const JobShape& shape)
    : served(make_served_variables(declaration_of(shape), 0)),
      data({.workers = shape.workers, .nonce = shape.nonce, .record = {}}) {
  data.serve(served, 1);
}

WorkerConnection DataServiceCase::welcomed(const wire::DataHelloT& hello) {
  WorkerConnection connection = connect();
  connection.send(hello);
  connection.receive<wire::DataWelcomeT>();
  return connection;
}

std::vector<EndedStep> DataServiceCase::await_steps(std::size_t count) {
  const Deadline deadline = Deadline::after(std::chrono::seconds(10));
  std::vector<EndedStep> all;
  while (all.size() < count && !deadline.passed()) {
    pollfd waiting{data.descriptor(), POLLIN, 0};
    poll(&waiting, 1, deadline.remaining_milliseconds());
    for (EndedStep& one : data.take_ended_steps()) all.push_back(std::move(one));
  }
  return all;
}

wire::DataHelloT hello_of(WorkerId worker, std::uint32_t incarnation, const std::string& segment) {
  wire::DataHelloT hello;
  hello.worker = worker;
  hello.incarnation = incarnation;
  hello.segment = segment;
  return hello;
}

wire::PushT push_of(std::uint64_t sequence, std::uint64_t version) {
  wire::PushT push;
  push.sequence = sequence;
  push.shard_incarnation = 1;
  push.version = version;
  push.learning_rate = 1.0F;
  push.wants_values = true;
  push.ends_step = true;
  return push;
}

wire::PullT pull_of(std::vector<int> buckets) {
  wire::PullT pull;
  pull.buckets = std::move(buckets);
  return pull;
}

}  // namespace syncopate::ps::testing
