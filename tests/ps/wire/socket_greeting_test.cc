// Tests the greeting of sockets with a nonce, also of callers that repeat what they have recorded.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <mutex>
#include <string>
#include <thread>

#include "ps/net/connection.h"
#include "ps/wire/greeting_messages.h"
#include "ps/wire/zmq_socket.h"
#include "tests/ps/wire/socket_case.h"
#include "tests/support/contains.h"

namespace syncopate::ps::wire {
namespace {

SocketLimits of_job(const std::string& nonce) {
  SocketLimits limits = for_any_caller();
  limits.nonce = nonce;
  return limits;
}

// Forwards one connection to a port and records what the two ends send.
class RecordingProxy {
 public:
  explicit RecordingProxy(std::uint16_t to)
      : listener_(Endpoint{"127.0.0.1", 0}), thread_([this, to](const std::stop_token& stop) {
          const Deadline soon = Deadline::after(std::chrono::seconds(60));
          const auto caller = listener_.accept(soon);
          if (!caller) return;
          const Connection target = connect_to({"127.0.0.1", to}, "the server", soon);
          forward(stop, caller->descriptor(), target.descriptor());
        }) {}

  std::uint16_t port() const { return listener_.port(); }
  std::string from_caller() const {
    const std::lock_guard lock(mutex_);
    return sent_[0];
  }
  std::string from_server() const {
    const std::lock_guard lock(mutex_);
    return sent_[1];
  }

 private:
  void forward(const std::stop_token& stop, int caller, int target) {
    const std::array ends = {caller, target};
    while (!stop.stop_requested()) {
      std::array<pollfd, 2> polled{pollfd{caller, POLLIN, 0}, pollfd{target, POLLIN, 0}};
      poll(polled.data(), polled.size(), 10);
      for (std::size_t from = 0; from < 2; ++from) {
        std::array<char, 4096> bytes{};
        const ssize_t count = recv(ends[from], bytes.data(), bytes.size(), MSG_DONTWAIT);
        if (count == 0) return;
        if (count < 0) continue;
        const std::lock_guard lock(mutex_);
        sent_[from].append(bytes.data(), static_cast<std::size_t>(count));
        EXPECT_EQ(
            ::send(ends[1 - from], bytes.data(), static_cast<std::size_t>(count), MSG_NOSIGNAL),
            count);
      }
    }
  }

  mutable std::mutex mutex_;
  std::array<std::string, 2> sent_;
  Listener listener_;
  std::jthread thread_;
};

MessageT hello_of(int index) {
  HelloT hello;
  hello.index = index;
  return make_message(std::move(hello));
}

// Returns the next message of `server` while the callers continue their greetings.
Received next_of(Socket& server, Socket& caller) {
  std::optional<Received> message;
  EXPECT_TRUE(wait_until({&server, &caller}, [&] {
    (void)caller.link_event();
    while (caller.receive()) {
    }
    return (message = server.receive()).has_value();
  }));
  return message ? std::move(*message) : Received();
}

// Returns a message as a socket receives it from the peer.
Received received(Envelope message, const std::string& peer) {
  std::string problem;
  MessageT header = *decode(bytes_in(message.frames.front()), &problem);
  message.peer = peer;
  return {std::move(message), std::move(header)};
}

// The messages of a connection may be received after it has closed, and behind those of another one
// that got its descriptor.
TEST(GreetingAnswers, KnowAConnectionUntilAnotherWithItsDescriptorOpens) {
  GreetingAnswers answers("nonce");
  GreetingCalls calls("nonce", "the server");
  Received call = received(calls.begin(), "caller");
  Received challenge = received(*answers.take(call, 7).answer, "");
  calls.take(challenge);
  const auto hello_is_of_job = [&] {
    Received hello = received(*calls.seal(envelope("", hello_of(1))), "caller");
    answers.take(hello, 7);
    return hello.is_of_job;
  };
  GreetingCalls others("nonce", "the server");
  Received late = received(others.begin(), "other");
  answers.take(late, 7);
  EXPECT_TRUE(hello_is_of_job());
  answers.on_opened(8);
  EXPECT_TRUE(hello_is_of_job());
  answers.on_opened(7);
  EXPECT_FALSE(hello_is_of_job()) << "a recorded greeting opens no later connection";
}

TEST(ASocketWithANonce, TellsWhetherTheCallerOfAGreetingKnowsTheNonce) {
  for (const std::string nonce : {"nonce", "guessed", ""}) {
    Context context;
    const auto server = Socket::listen(context, {"127.0.0.1", 0}, of_job("nonce"));
    const auto caller = Socket::connect(context, {"127.0.0.1", server->port()}, {.nonce = nonce});
    caller->send(envelope("", hello_of(3)));
    const Received hello = next_of(*server, *caller);
    ASSERT_NE(hello.header.body.AsHello(), nullptr);
    EXPECT_EQ(hello.header.body.AsHello()->index, 3);
    EXPECT_EQ(hello.is_of_job, nonce == "nonce") << nonce;
    EXPECT_EQ(hello.frames.size(), 1U) << "the seal is taken off";
  }
}

TEST(ASocketWithANonce, TakesNoMessageOfAServerThatDoesNotProveIt) {
  Context context;
  const auto server = Socket::listen(context, {"127.0.0.1", 0}, of_job("guessed"));
  const auto caller = Socket::connect(context, {"127.0.0.1", server->port()}, {.nonce = "nonce"});
  caller->send(envelope("", hello_of(0)));
  const Received hello = next_of(*server, *caller);
  server->send(envelope(hello.peer, make_message(WelcomeT())));
  RefusedT refused;
  refused.line = "another job";
  server->send(envelope(hello.peer, make_message(std::move(refused))));
  const Envelope answer = await_message(*caller, {server.get()});
  const auto header = decode(bytes_in(answer.frames.at(0)));
  ASSERT_TRUE(header && header->body.AsRefused() != nullptr) << "the Welcome came first";
  EXPECT_EQ(header->body.AsRefused()->line, "another job");
}

// Returns what a caller has sent, with this routing id instead of none in its READY command.
// Source: ZMTP 3.0, a property is its name and its value, each behind its length.
std::string with_routing_id(std::string sent, const std::string& id) {
  constexpr std::size_t kCommandSize = 65;  // behind ZeroMQ's own greeting and the flags
  constexpr std::string_view kProperty = "\x08Identity";
  const std::size_t property = sent.find(kProperty);
  EXPECT_NE(property, std::string::npos);
  const std::size_t size = property + kProperty.size() + 3;  // the last byte of four
  EXPECT_EQ(sent.at(size), '\0');
  sent[size] = static_cast<char>(id.size());
  sent.at(kCommandSize) = static_cast<char>(sent[kCommandSize] + static_cast<char>(id.size()));
  return sent.insert(size + 1, id);
}

// Sends what a caller sent. ZeroMQ's own greeting has 64 bytes; what follows answers the other
// end's.
void replay(std::string_view recorded, int descriptor) {
  constexpr std::size_t kZmtpGreeting = 64;
  const auto send_part = [&](std::string_view part) {
    EXPECT_EQ(::send(descriptor, part.data(), part.size(), MSG_NOSIGNAL), std::ssize(part));
  };
  send_part(recorded.substr(0, kZmtpGreeting));
  std::array<char, kZmtpGreeting> answer{};
  for (std::size_t read = 0; read < answer.size();) {
    ASSERT_TRUE(wait_ready(descriptor, POLLIN, Deadline::after(std::chrono::seconds(60))));
    const ssize_t count =
        recv(descriptor, answer.data() + read, answer.size() - read, MSG_DONTWAIT);
    ASSERT_GT(count, 0);
    read += static_cast<std::size_t>(count);
  }
  send_part(recorded.substr(kZmtpGreeting));
}

// Returns the next message; nothing if none comes within the time.
std::optional<Received> receive_within(Socket& server, std::chrono::nanoseconds time) {
  const Deadline deadline = Deadline::after(time);
  std::vector<pollfd> waiting;
  for (const int descriptor : server.descriptors()) waiting.push_back({descriptor, POLLIN, 0});
  for (;;) {
    server.flush();
    std::optional<Received> received = server.receive();
    if (received || deadline.passed()) return received;
    poll(waiting.data(), waiting.size(), deadline.remaining_milliseconds());
  }
}

// Any caller may choose its routing id, also that of an earlier connection.
TEST(ASocketWithANonce, NeitherSendsTheNonceNorAcceptsARecordedGreeting) {
  const std::string nonce = "a nonce that never travels";
  Context context;
  const auto server = Socket::listen(context, {"127.0.0.1", 0}, of_job(nonce));
  std::string recorded;
  std::string routing_id;
  {
    RecordingProxy proxy(server->port());
    const auto caller = Socket::connect(context, {"127.0.0.1", proxy.port()}, {.nonce = nonce});
    caller->send(envelope("", hello_of(1)));
    const Received hello = next_of(*server, *caller);
    EXPECT_TRUE(hello.is_of_job);
    routing_id = hello.peer;
    server->flush();
    recorded = proxy.from_caller();
    EXPECT_FALSE(contains(recorded, nonce));
    EXPECT_FALSE(contains(proxy.from_server(), nonce));
  }
  ASSERT_GT(recorded.size(), 100U);
  recorded = with_routing_id(recorded, routing_id);
  // ZeroMQ ignores a caller with the routing id of a connection that is still ending.
  std::optional<Received> replayed;
  for (const Deadline end = Deadline::after(std::chrono::seconds(60));
       !replayed && !end.passed();) {
    const Connection stranger = connect_to({"127.0.0.1", server->port()}, "the server", end);
    replay(recorded, stranger.descriptor());
    replayed = receive_within(*server, std::chrono::milliseconds(200));
  }
  ASSERT_TRUE(replayed && replayed->header.body.AsHello() != nullptr);
  EXPECT_FALSE(replayed->is_of_job);
}

TEST(ASocketWithANonce, RefusesAnotherVersionInItsOwnProtocol) {
  Context context;
  const auto server = Socket::listen(context, {"127.0.0.1", 0}, of_job("nonce"));
  const auto old = Socket::connect(context, {"127.0.0.1", server->port()});
  await_link(*old, LinkEvent::kConnected, {server.get()});
  MessageT hello = hello_of(0);
  hello.protocol = kProtocol - 1;
  std::string problem;
  old->send(envelope("", hello));
  EXPECT_TRUE(wait_until({server.get(), old.get()}, [&] {
    EXPECT_FALSE(server->receive());
    testing::internal::CaptureStderr();
    EXPECT_FALSE(old->receive()) << "the answer is in the protocol of the other version";
    problem += testing::internal::GetCapturedStderr();
    return old->foreign_messages() == 1;
  }));
  EXPECT_TRUE(contains(problem, "protocol 4, expected 5"));
}

TEST(ASocketWithANonce, NoticesAServerThatDoesNotAnswerTheGreeting) {
  Context context;
  auto server = Socket::listen(context, {"127.0.0.1", 0}, for_any_caller());
  const auto caller = Socket::connect(context, {"127.0.0.1", server->port()}, {.nonce = "nonce"});
  EXPECT_TRUE(wait_until({server.get(), caller.get()}, [&] {
    EXPECT_FALSE(caller->link_event());
    return server->receive().has_value();
  }));
  EXPECT_TRUE(caller->lacks_challenge());
}

}  // namespace
}  // namespace syncopate::ps::wire
