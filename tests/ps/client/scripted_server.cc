#include "tests/ps/client/scripted_server.h"

#include <unistd.h>

#include <future>

#include "ps/net/connection.h"

namespace syncopate::ps::testing {
namespace {

constexpr std::int64_t kElements = 8;

wire::SocketLimits of_a_job() {
  wire::SocketLimits limits = wire::for_any_caller();
  limits.nonce = "";
  return limits;
}

}  // namespace

ScriptedServer::ScriptedServer()
    : data(wire::Socket::listen(context_, {"127.0.0.1", 0}, of_a_job())) {
  Listener listener(Endpoint{"127.0.0.1", 0});
  rendezvous_ = {"127.0.0.1", listener.port()};
  listening_ = listener.release();
  data_welcome.incarnation = 1;
  data_welcome.credit_bytes = 1 << 20;
  listen();
}

void ScriptedServer::listen() {
  control.reset();
  control = wire::Socket::listen(context_, FileDescriptor(dup(listening_.get())), of_a_job());
}

std::vector<wire::Socket*> ScriptedServer::others_of(const wire::Socket& socket) const {
  return {&socket == control.get() ? data.get() : control.get()};
}

wire::RosterT ScriptedServer::roster(std::uint32_t incarnation) const {
  wire::RosterT roster;
  auto address = std::make_unique<wire::ServerAddressT>();
  address->endpoint = "127.0.0.1:" + std::to_string(data->port());
  address->incarnation = incarnation;
  roster.servers.push_back(std::move(address));
  return roster;
}

wire::WelcomeT ScriptedServer::welcome(std::uint32_t incarnation) const {
  wire::WelcomeT welcome;
  welcome.incarnation = 1;
  welcome.servers = roster(incarnation).servers;
  return welcome;
}

wire::HelloT ScriptedServer::break_control(const std::function<void()>& before_answer) {
  listen();
  wire::HelloT hello = await<wire::HelloT>(*control);
  before_answer();
  wire::WelcomeT again = welcome(1);
  again.call = hello.call;
  send(*control, std::move(again));
  return hello;
}

wire::DataHelloT ScriptedServer::answer_data_hello() {
  wire::DataHelloT hello = await<wire::DataHelloT>(*data);
  send(*data, data_welcome);
  return hello;
}

std::unique_ptr<Client> ScriptedServer::make_client(int buckets, bool initialises) {
  const auto total = static_cast<std::size_t>(kElements * buckets);
  values.resize(total);
  gradients.resize(total, 1.0F);
  ClientOptions options{.rendezvous = rendezvous_,
                        .compression = compression,
                        .values = values,
                        .gradients = gradients,
                        .answer_timeout = answer_timeout};
  options.declaration.workers = 1;
  for (int b = 0; b < buckets; ++b) {
    options.declaration.buckets.emplace_back(kElements * b, kElements * (b + 1), 0);
  }
  auto client = std::async(std::launch::async, [&] { return std::make_unique<Client>(options); });
  wire::WelcomeT first = welcome(1);
  first.call = await<wire::HelloT>(*control).call;
  first.initialises = initialises;
  send(*control, std::move(first));
  answer_data_hello();
  // wait_until() flushes the sockets, because a message leaves only when its socket is flushed.
  EXPECT_TRUE(wire::wait_until({control.get(), data.get()}, [&] {
    return client.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  }));
  return client.get();
}

}  // namespace syncopate::ps::testing
