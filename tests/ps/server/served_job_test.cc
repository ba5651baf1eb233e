// Tests clients and servers of a job over real sockets, in one process.
#include <gtest/gtest.h>

#include <functional>
#include <future>
#include <thread>

#include "models/base/errors.h"
#include "ps/coordinator/declaration.h"
#include "ps/coordinator/wire_conversion.h"
#include "ps/wire/message.h"
#include "tests/ps/server/served_job.h"
#include "tests/ps/wire/socket_case.h"
#include "tests/support/contains.h"

namespace syncopate::ps::testing {
namespace {

// Runs `work` for every worker on a thread of its own. Workers register in their constructors.
void for_each_worker(const JobShape& shape, const ServedJob& job,
                     const std::function<void(int, TestWorker&)>& work) {
  std::vector<std::jthread> threads;
  std::vector<std::string> failures(static_cast<std::size_t>(shape.workers));
  for (int index = 0; index < shape.workers; ++index) {
    threads.emplace_back([&, index] {
      try {
        TestWorker worker(shape, job, index);
        worker.begin();
        work(index, worker);
      } catch (const std::exception& error) {
        failures[static_cast<std::size_t>(index)] = error.what();
      }
    });
  }
  threads.clear();
  for (const std::string& failure : failures) EXPECT_EQ(failure, "");
}

// Trains all batches that the worker is granted, until it may leave; returns the number of steps.
int train_until_finished(TestWorker& worker) {
  int steps = 0;
  while (const auto batch = worker.client->next_lease()) {
    worker.step(1.0F, *batch);
    ++steps;
  }
  while (const auto assignment = worker.client->wait_assignment()) {
    worker.client->complete_assignment(assignment->snapshot);
  }
  return steps;
}

int train(TestWorker& worker) {
  const int steps = train_until_finished(worker);
  worker.client->leave();
  return steps;
}

TEST(AServedJob, AppliesAPushAndAnswersWithTheNewValues) {
  const JobShape shape{.total_steps = 3};
  ServedJob job(shape);
  for_each_worker(shape, job, [&](int, TestWorker& worker) {
    EXPECT_EQ(worker.value(0), 0.0F);
    EXPECT_EQ(train(worker), 3);
    EXPECT_EQ(worker.value(0), -3.0F);
  });
  EXPECT_EQ(job.wait(), std::vector<std::string>{""});
}

// A process that sends messages of its own making to server 0.
class RawTask {
 public:
  RawTask(wire::Context& context, const ServedJob& job, const JobShape& shape, int index,
          const std::string& nonce = JobShape().nonce)
      : shape_(shape),
        index_(index),
        fingerprint_(fingerprint_of(declaration_of(shape))),
        socket_(wire::Socket::connect(context, job.rendezvous(), {.nonce = nonce})) {}

  void send_hello(bool with_declaration) {
    wire::HelloT hello = make_hello(/*role=*/0, index_, shape_.workers, 1);
    hello.pid = pid_;
    hello.incarnation = incarnation_;
    hello.call = 1;
    hello.fingerprint = fingerprint_;
    if (with_declaration) {
      hello.declaration = std::make_unique<wire::DeclarationT>(declaration_of(shape_));
    }
    send(std::move(hello));
  }
  template <typename Body>
  void send(Body body) {
    socket_->send(wire::envelope("", wire::make_message(std::move(body))));
  }
  // Returns the kind of the next message.
  wire::Body next_kind(std::vector<wire::Socket*> others = {}) {
    return kind_of(wire::await_message(*socket_, std::move(others)));
  }
  wire::Socket* socket() { return socket_.get(); }

  static wire::Body kind_of(const wire::Envelope& message) {
    const auto header = wire::decode(wire::bytes_in(message.frames.front()));
    return header ? header->body.type : wire::Body::NONE;
  }

  const JobShape shape_;
  const int index_;
  std::int64_t pid_ = 1;
  std::uint32_t incarnation_ = 0;
  std::uint64_t fingerprint_;

 private:
  std::unique_ptr<wire::Socket> socket_;
};

// A worker sends its declaration in a second Hello, which server 0 may receive after another
// process has taken the worker's place.
TEST(AServedJob, RefusesASecondHelloOfAReplacedWorker) {
  const JobShape shape{.workers = 2};
  const ServedJob job(shape);
  wire::Context context;
  RawTask first(context, job, shape, 1);
  first.send_hello(false);
  ASSERT_EQ(first.next_kind(), wire::Body::DeclarationRequest);
  RawTask second(context, job, shape, 1);
  second.pid_ = 2;
  second.send_hello(false);
  while (first.next_kind({second.socket()}) != wire::Body::Refused) continue;
  first.send_hello(true);
  EXPECT_EQ(first.next_kind(), wire::Body::Refused);
}

// Workers with other instruction sets declare the same network and have another fingerprint. Such a
// worker is registered by its second Hello, and sends heartbeats from the first one on.
TEST(AServedJob, AcceptsAHeartbeatBeforeTheDeclaration) {
  const JobShape shape{.workers = 2};
  const ServedJob job(shape);
  wire::Context context;
  RawTask first(context, job, shape, 0);
  first.send_hello(true);
  wire::await_link(*first.socket(), wire::LinkEvent::kConnected);
  RawTask second(context, job, shape, 1);
  ++second.fingerprint_;
  second.send_hello(false);
  ASSERT_EQ(second.next_kind({first.socket()}), wire::Body::DeclarationRequest);
  second.send(wire::HeartbeatT{});
  second.send_hello(true);
  EXPECT_EQ(second.next_kind({first.socket()}), wire::Body::Welcome);
}

// At its end, the job sends its tasks why it has failed; a stranger is not told.
TEST(AServedJob, ThatHasFailedTellsNoStrangerWhy) {
  const JobShape shape{.workers = 2, .consistency = 0};
  ServedJob job(shape);
  wire::Context context;
  RawTask silent(context, job, shape, 0);
  silent.send_hello(true);
  RawTask failing(context, job, shape, 1);
  failing.send_hello(true);
  while (failing.next_kind({silent.socket()}) != wire::Body::Welcome) continue;
  RawTask stranger(context, job, shape, 0, "another job");
  stranger.incarnation_ = 1;  // like a worker that reconnects
  wire::FailingT reason;
  reason.reason = "a secret";
  failing.send(std::move(reason));
  std::atomic<bool> has_ended{false};
  std::jthread waiting([&] {
    job.wait();
    has_ended = true;
  });
  int refusals = 0;
  stranger.send_hello(false);
  while (!has_ended) {
    for (wire::Socket* socket : {stranger.socket(), silent.socket(), failing.socket()}) {
      socket->flush();
    }
    std::this_thread::yield();
    while (const auto message = stranger.socket()->receive()) {
      EXPECT_EQ(RawTask::kind_of(*message), wire::Body::Refused);
      ++refusals;
      stranger.send_hello(false);
    }
  }
  EXPECT_GT(refusals, 0);
}

TEST(AServedJob, AppliesEveryPushOfSeveralWorkersOnSeveralServersOnce) {
  const JobShape shape{
      .workers = 3, .servers = 2, .bucket_sizes = {5, 70000, 300, 40000}, .total_steps = 60};
  ServedJob job(shape);
  std::atomic<int> steps{0};
  std::atomic<int> levels{0};
  for_each_worker(shape, job, [&](int, TestWorker& worker) {
    steps += train(worker);
    worker.client->flush();
    for (int b = 0; b < 4; ++b) levels += worker.value(b) >= -60.0F ? 1 : 0;
  });
  EXPECT_EQ(steps, 60);
  EXPECT_EQ(levels, 12);
  EXPECT_EQ(job.wait(), (std::vector<std::string>{"", ""}));
}

TEST(AServedJob, UnderSyncUpdatesOncePerStepOfAllWorkers) {
  const JobShape shape{.workers = 2, .servers = 2, .consistency = 0, .bucket_sizes = {7, 50000}};
  ServedJob job(shape);
  for_each_worker(shape, job, [&](int index, TestWorker& worker) {
    for (int i = 1; i <= 5; ++i) {
      worker.step(index == 0 ? 1.0F : 2.0F);
      EXPECT_EQ(worker.value(0), -3.0F * static_cast<float>(i));
      EXPECT_EQ(worker.value(1), -3.0F * static_cast<float>(i));
    }
    worker.client->leave();
  });
  EXPECT_EQ(job.wait(), (std::vector<std::string>{"", ""}));
}

TEST(AServedJob, UnderSyncAveragesTheRunningStatisticsOfAllWorkers) {
  const JobShape shape{.workers = 3, .consistency = 0, .state_elements = 2};
  ServedJob job(shape);
  for_each_worker(shape, job, [&](int index, TestWorker& worker) {
    for (const float round : {1.0F, 2.0F, 3.0F}) {
      worker.step(1.0F);
      const std::int64_t samples = index == 1 ? 0 : 1 + index;
      const std::vector<float> state(samples == 0 ? 0 : 2, round * static_cast<float>(4 + index));
      worker.client->write_state(state,
                                 {.average = worker.client->exchanges() + 1, .samples = samples});
      worker.client->exchange("");
      EXPECT_EQ(worker.client->read_snapshot_state(wire::kLiveSnapshot),
                std::vector<float>(2, 5.5F * round))
          << "(1 * 4 + 3 * 6) / 4";
    }
    worker.client->leave();
  });
  EXPECT_EQ(job.wait(), std::vector<std::string>{""});
}

TEST(AServedJob, WithBf16ValuesKeepsExactOnesForSnapshots) {
  const JobShape shape{
      .servers = 2, .consistency = 0, .bf16_values = true, .bucket_sizes = {7, 50000}};
  ServedJob job(shape);
  for_each_worker(shape, job, [&](int, TestWorker& worker) {
    // The steps lead to 1 + 2^-9, which is exact in f32; its nearest bf16 is 1.
    worker.step(-1.0F);
    worker.step(-0x1p-9F);
    EXPECT_EQ(worker.value(0), 1.0F);
    EXPECT_EQ(worker.value(1), 1.0F);
    std::vector<float> exact(worker.values.size());
    worker.client->read_snapshot(wire::kLiveSnapshot, exact, {});
    EXPECT_EQ(exact.front(), 1.0F + 0x1p-9F);
    worker.client->pull();
    worker.client->flush();
    EXPECT_EQ(worker.value(1), 1.0F);
    EXPECT_EQ(worker.client->traffic().bytes_pulled,
              4 * 2 * (7 + 50000));  // at the start, after each of two steps, and now
    worker.client->leave();
  });
  EXPECT_EQ(job.wait(), (std::vector<std::string>{"", ""}));
}

// A worker of many shards waits for all of them at once.
TEST(AServedJob, OfManyServersServesEveryOne) {
  JobShape shape{.servers = 40, .consistency = 0};
  shape.bucket_sizes.assign(80, 8);
  ServedJob job(shape);
  for_each_worker(shape, job, [&](int, TestWorker& worker) {
    for (int i = 1; i <= 20; ++i) worker.step(1.0F);
    for (int b = 0; b < 80; ++b) EXPECT_EQ(worker.value(b), -20.0F) << b;
    worker.client->leave();
  });
  EXPECT_EQ(job.wait(), std::vector<std::string>(40));
}

TEST(AServedJob, ContinuesWithoutAWorkerThatNeverBecomesReady) {
  const JobShape shape{.workers = 2, .total_steps = 3, .join_timeout = std::chrono::seconds(2)};
  ServedJob job(shape);
  std::optional<TestWorker> idle;
  std::jthread meets([&] { idle.emplace(shape, job, 1); });
  TestWorker worker(shape, job, 0);
  worker.begin();
  EXPECT_EQ(train(worker), 3);
  EXPECT_EQ(job.wait(), std::vector<std::string>{""});
}

// Worker 0 leaves and ends, worker 1 ends without leaving, worker 2 leaves after both were silent
// for longer than the peer timeout.
TEST(AServedJob, NamesAWorkerThatEndsWithoutLeavingAndNoneThatHasLeft) {
  const JobShape shape{.workers = 3, .total_steps = 3, .peer_timeout = std::chrono::seconds(1)};
  ServedJob job(shape);
  std::promise<void> has_left;
  auto left = has_left.get_future();
  for_each_worker(shape, job, [&](int index, TestWorker& worker) {
    train_until_finished(worker);
    if (index == 0) {
      worker.client->leave();
      worker.client.reset();
      has_left.set_value();
    } else if (index == 1) {
      EXPECT_EQ(left.wait_for(std::chrono::seconds(60)), std::future_status::ready);
    } else {
      EXPECT_TRUE(job.has_noted("worker 1 (", std::chrono::seconds(60)));
      worker.client->leave();
    }
  });
  EXPECT_EQ(job.wait(), std::vector<std::string>{""});
  EXPECT_FALSE(job.has_noted("worker 0 ("));
}

TEST(AServedJob, ServesAHundredThousandVariables) {
  JobShape shape{.workers = 2, .servers = 2, .total_steps = 4};
  shape.bucket_sizes.assign(64, 1);
  shape.variables_of_bucket = 1563;
  ServedJob job(shape);
  std::atomic<int> steps{0};
  for_each_worker(shape, job, [&](int, TestWorker& worker) { steps += train(worker); });
  EXPECT_EQ(steps, 4);
  EXPECT_EQ(job.wait(), (std::vector<std::string>{"", ""}));
}

TEST(AServedJob, RefusesASecondServer0) {
  const JobShape shape;
  const ServedJob job(shape);
  wire::Context context;
  const auto socket = wire::Socket::connect(context, job.rendezvous(), {.nonce = shape.nonce});
  wire::await_link(*socket, wire::LinkEvent::kConnected);
  wire::HelloT hello;
  hello.role = 1;
  hello.world_size = hello.num_servers = 1;
  hello.server = std::make_unique<wire::ServerAddressT>();
  socket->send(wire::envelope("", wire::make_message(std::move(hello))));
  const wire::Envelope answer = wire::await_message(*socket, {});
  const auto header = wire::decode(wire::bytes_in(answer.frames.at(0)));
  ASSERT_TRUE(header && header->body.AsRefused() != nullptr);
  EXPECT_EQ(header->body.AsRefused()->line.find("another process"), 0U);
}

// Server 0 ends right after it reports a failure, so that a worker could miss the reason. This is a
// race, so the test repeats the job.
TEST(AServedJob, SendsEveryWorkerTheReasonOfItsFailure) {
  for (int round = 0; round < 12; ++round) {
    const JobShape shape{.workers = 4, .consistency = 0};
    ServedJob job(shape);
    std::vector<std::string> messages(4);
    for_each_worker(shape, job, [&](int index, TestWorker& worker) {
      if (index == 0) {
        worker.step(1.0F);
        return worker.client->fail("the disk is full", false);
      }
      try {
        // The reason for the failure may arrive before the end of the first step or after a later
        // one.
        for (int more = 0; more < 10000; ++more) worker.step(1.0F);
      } catch (const PeerError& error) {
        messages[static_cast<std::size_t>(index)] = error.what();
      }
    });
    for (std::size_t index = 1; index < 4; ++index) {
      EXPECT_TRUE(contains(messages[index], "failed: the disk is full"));
    }
  }
}

}  // namespace
}  // namespace syncopate::ps::testing
