// Tests how the job's declaration reaches server 0, and that a refusal names the first difference
// between two declarations, with both values.
#include <gtest/gtest.h>

#include <functional>

#include "ps/coordinator/declaration.h"
#include "ps/coordinator/refusals.h"
#include "tests/ps/coordinator/coordinator_case.h"
#include "tests/support/contains.h"

namespace syncopate::ps {
namespace {

void agree(wire::DeclarationT& declaration, const std::string& name, const std::string& value,
           bool must = true) {
  auto agreement = std::make_unique<wire::AgreementT>();
  agreement->name = name;
  agreement->value = value;
  agreement->must = must;
  declaration.agreements.push_back(std::move(agreement));
}

// Returns the refusal of worker 1 if its declaration is worker 0's, modified by `change`.
wire::RefusedT refusal_of(const std::function<void(wire::HelloT& hello)>& change) {
  wire::DeclarationT declaration = make_declaration();
  agree(declaration, "--model", "mnist-cnn");
  agree(declaration, "host CPU", "v3", false);
  JobCase job(declaration);
  job.send_hello(job.server_hello(0));
  job.send_hello(job.worker_hello(0));
  wire::HelloT hello = job.worker_hello(1);
  change(hello);
  const Coordinator::HelloAnswer answered = job.coordinator->on_hello(hello);
  if (answered.task) return {};
  return *answered.answer.body.AsRefused();
}

TEST(Hello, IsRefusedWithTheFirstAgreementThatDiffers) {
  const wire::RefusedT refused =
      refusal_of([](wire::HelloT& hello) { hello.declaration->agreements[0]->value = "mlp"; });
  EXPECT_EQ(refused.line,
            "worker 1 has --model mlp, the job has mnist-cnn (worker 0's); start all workers with "
            "the same flags");
  EXPECT_TRUE(refused.is_usage_error);
}

TEST(Hello, IsRefusedForAnAgreementThatIsMissing) {
  const wire::RefusedT refused =
      refusal_of([](wire::HelloT& hello) { hello.declaration->agreements[0]->name = "--network"; });
  EXPECT_TRUE(contains(refused.line, "--model nothing, the job has mnist-cnn"));
}

TEST(Hello, IsAcceptedIfAnOptionalAgreementDiffers) {
  EXPECT_EQ(
      refusal_of([](wire::HelloT& hello) { hello.declaration->agreements[1]->value = "v4"; }).line,
      "");
}

TEST(Hello, IsRefusedForAnotherLayoutOptimizerOrConsistency) {
  const auto line_of = [](const std::function<void(wire::DeclarationT&)>& change) {
    return refusal_of([&](wire::HelloT& hello) { change(*hello.declaration); }).line;
  };
  EXPECT_TRUE(
      contains(line_of([](auto& d) { d.variables.push_back(std::make_unique<wire::VariableT>()); }),
               "a number of variables of 1, the job has 0"));
  EXPECT_TRUE(
      contains(line_of([](auto& d) { d.buckets.emplace_back(0, 4, 1); }), "number of buckets"));
  EXPECT_TRUE(contains(line_of([](auto& d) { d.optimizer = "adam"; }),
                       "the optimizer adam, the job has sgd"));
  EXPECT_TRUE(contains(line_of([](auto& d) { d.optimizer_constants = {0.5, 2}; }), "[0.5, 2]"));
  EXPECT_TRUE(contains(line_of([](auto& d) {
                         d.consistency = static_cast<std::uint8_t>(Consistency::kSsp);
                         d.max_staleness = 3;
                       }),
                       "ssp with staleness up to 3, the job has async"));
  EXPECT_TRUE(contains(line_of([](auto& d) {
                         d.consistency = static_cast<std::uint8_t>(Consistency::kQuorum);
                         d.quorum = 2;
                         d.grace = 0.5;
                       }),
                       "quorum of 2 worker(s) and 0.5 s of grace, the job has async"));
  EXPECT_TRUE(contains(line_of([](auto& d) { d.dataset_size = 13; }), "dataset size 13"));
}

TEST(Hello, IsRefusedForAnotherSizeOfTheJob) {
  const wire::RefusedT workers = refusal_of([](wire::HelloT& hello) { hello.world_size = 3; });
  EXPECT_TRUE(contains(workers.line, "for 3 workers, the job has 2"));
  EXPECT_TRUE(workers.is_usage_error);
  const wire::RefusedT servers = refusal_of([](wire::HelloT& hello) { hello.num_servers = 4; });
  EXPECT_TRUE(contains(servers.line, "for 4 servers, the job has 1"));
  const wire::RefusedT index = refusal_of([](wire::HelloT& hello) { hello.index = 2; });
  EXPECT_TRUE(contains(index.line, "worker 2 is not part of the job, which has 2 workers, 0 to 1"));
  EXPECT_FALSE(refusal_of([](wire::HelloT& hello) { hello.index = -1; }).line.empty());
}

TEST(Hello, IsRefusedWithoutAUsageErrorForAnotherNonce) {
  wire::HelloT hello;
  hello.index = 1;
  const wire::RefusedT refused = refuse_other_job(hello);
  EXPECT_EQ(refused.line,
            "worker 1 belongs to another job than server 0 at this port: the two have different "
            "nonces, or one has none; give all tasks the same SYNCOPATE_NONCE (--nonce goes before "
            "it); is one of them left from an earlier run, or do two jobs share a port?");
  EXPECT_FALSE(refused.is_usage_error);
}

TEST(Hello, IsRefusedWithoutAnAddress) {
  EXPECT_FALSE(refusal_of([](wire::HelloT& hello) {
                 hello.role = 1;
                 hello.index = 0;
               }).line.empty());
  EXPECT_FALSE(refusal_of([](wire::HelloT& hello) { hello.role = 2; }).line.empty());
}

// A Hello as workers send it first: with the fingerprint of the declaration only.
wire::HelloT short_hello(const JobCase& job, int index, std::uint64_t fingerprint) {
  wire::HelloT hello = job.worker_hello(index);
  hello.declaration.reset();
  hello.fingerprint = fingerprint;
  hello.pid = 100 + index;
  return hello;
}

TEST(Declaration, IsRequestedFromOneWorkerAndTravelsOnce) {
  JobCase job;
  const std::uint64_t fingerprint = fingerprint_of(job.declaration);
  for (int w = 0; w < 2; ++w) EXPECT_EQ(job.send_hello(short_hello(job, w, fingerprint)), "");
  EXPECT_TRUE(job.take<wire::DeclarationRequestT>(worker(0)));
  EXPECT_FALSE(job.take<wire::DeclarationRequestT>(worker(1)));
  job.send_hello(job.server_hello(0));
  EXPECT_FALSE(job.take<wire::WelcomeT>(worker(1)));
  wire::HelloT declaring = job.worker_hello(0);
  declaring.pid = 100;
  EXPECT_EQ(job.send_hello(declaring), "");
  for (int w = 0; w < 2; ++w) {
    const auto welcome = job.take<wire::WelcomeT>(worker(w));
    ASSERT_TRUE(welcome);
    EXPECT_EQ(welcome->incarnation, 1U);
  }
  EXPECT_FALSE(job.take<wire::DeclarationRequestT>(worker(1)));
}

TEST(Declaration, IsRequestedFromTheNextWorkerIfTheFirstIsLost) {
  JobCase job;
  const std::uint64_t fingerprint = fingerprint_of(job.declaration);
  for (int w = 0; w < 2; ++w) job.send_hello(short_hello(job, w, fingerprint));
  EXPECT_TRUE(job.take<wire::DeclarationRequestT>(worker(0)));
  job.lose(worker(0));
  EXPECT_TRUE(job.take<wire::DeclarationRequestT>(worker(1)));
}

TEST(Declaration, IsComparedIfItsFingerprintDiffers) {
  for (const bool fits : {true, false}) {
    JobCase job;
    job.send_hello(job.server_hello(0));
    job.send_hello(short_hello(job, 1, 5));
    EXPECT_TRUE(job.take<wire::DeclarationRequestT>(worker(1)));
    job.send_hello(short_hello(job, 0, 6));
    wire::HelloT declaring = job.worker_hello(1);
    declaring.pid = 101;
    EXPECT_EQ(job.send_hello(declaring), "");
    // Worker 0 registered with another fingerprint, which may be due to an option that need not be
    // equal.
    EXPECT_TRUE(job.take<wire::DeclarationRequestT>(worker(0)));
    EXPECT_FALSE(job.take<wire::WelcomeT>(worker(1)));
    declaring = job.worker_hello(0);
    declaring.pid = 100;
    if (!fits) declaring.declaration->batch_size = 3;
    EXPECT_EQ(job.send_hello(declaring).empty(), fits);
    EXPECT_EQ(job.take<wire::WelcomeT>(worker(0)).has_value(), fits);
    EXPECT_EQ(job.coordinator->failure().has_value(), !fits);
  }
}

// A process with other flags must not end the worker whose index it was given by mistake.
TEST(Declaration, OfALateWorkerIsRequestedBeforeItReplacesAnother) {
  StartedJob job;
  const SampleRange batch = job.lease(1);
  wire::HelloT hello = short_hello(job, 1, 5);
  const Coordinator::HelloAnswer answered = job.coordinator->on_hello(hello);
  EXPECT_FALSE(answered.task);
  EXPECT_NE(answered.answer.body.AsDeclarationRequest(), nullptr);
  job.trained(1, 1, batch);
  EXPECT_EQ(job.coordinator->status().step, 1);
  hello.fingerprint = fingerprint_of(job.declaration);
  EXPECT_EQ(job.send_hello(hello), "");
}

TEST(Hello, OfAnUnknownIncarnationIsRefusedWithoutASnapshot) {
  const wire::RefusedT refused = refusal_of([](wire::HelloT& hello) { hello.incarnation = 2; });
  EXPECT_TRUE(contains(refused.line, "without a snapshot"));
}

}  // namespace
}  // namespace syncopate::ps
