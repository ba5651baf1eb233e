// Tests what a run does with a network and data that a program brings itself.
#include "worker/run/run_workload.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "models/base/errors.h"
#include "tests/support/contains.h"
#include "tests/support/thrown.h"
#include "worker/run/run_data.h"
#include "worker/run/training_session.h"

namespace syncopate {
namespace {

// Samples [2] f32 of two classes.
class Pairs final : public Dataset {
 public:
  explicit Pairs(std::int64_t size, SampleSpec spec = classified_samples({2}, 2, DType::kF32))
      : spec_(std::move(spec)), size_(size) {}
  std::int64_t size() const noexcept override { return size_; }
  const SampleSpec& spec() const noexcept override { return spec_; }
  void read(std::int64_t index, const Draw& /*draw*/, const SampleView& sample) const override {
    const std::int32_t target = label(index);
    std::memset(sample.inputs[0].data(), 0, 2 * sizeof(float));
    std::memcpy(sample.target.data(), &target, sizeof target);
  }
  std::int32_t label(std::int64_t index) const override {
    return static_cast<std::int32_t>(index % 2);
  }
  std::uint64_t fingerprint(std::int64_t index) const override {
    return static_cast<std::uint64_t>(index);
  }

 private:
  SampleSpec spec_;
  std::int64_t size_;
};

DataSplits open_pairs(const DataOptions& /*options*/) {
  return {
      .name = "pairs", .train = std::make_unique<Pairs>(20), .test = std::make_unique<Pairs>(4)};
}

Graph network(int features, int classes) {
  GraphBuilder builder("own-network");
  const NodeId x = builder.input({features}, {.dtype = DType::kF32, .mean = {0}, .stddev = {1}});
  return builder.finish(builder.dense(x, "classes", classes));
}

Graph make_network(const DataSplits& /*data*/) { return network(2, 2); }

// Returns the error of opening the data and making the network of a program.
std::string refusal(const Workload& own, const TrainOptions& options = {}) {
  return message_if_thrown<UsageError>([&] {
    const Workload checked = checked_workload(own, options);
    (void)checked.make_network(checked.open_data({}));
  });
}

// Expects that `text` contains `part`.
void expect_part(const std::string& text, const std::string& part) {
  EXPECT_TRUE(contains(text, part));
}

TEST(AProgramsWorkload, IsTakenIfNetworkAndDataFit) {
  EXPECT_EQ(refusal({.open_data = open_pairs, .make_network = make_network}), "");
}

TEST(AProgramsWorkload, HasTheFlagsSplitAndLabelSmoothing) {
  const Workload own{.open_data = open_pairs, .make_network = make_network};
  const TrainOptions options{.label_smoothing = 0.1F};
  const Workload checked = checked_workload(own, options);
  const DataSplits data = checked.open_data({.split = "val=0.25"});
  EXPECT_EQ(data.train->size(), 15);
  ASSERT_NE(data.validation, nullptr);
  EXPECT_EQ(data.validation->size(), 5);
  EXPECT_EQ(checked.make_network(data).loss().label_smoothing, 0.1F);
}

TEST(AProgramsWorkload, IsRefusedIfTheNetworkDoesNotFit) {
  expect_part(refusal({.open_data = open_pairs,
                       .make_network = [](const DataSplits& /*data*/) { return network(3, 2); }}),
              "the program's network 'own-network' does not fit its data 'pairs': it has input x");
  expect_part(refusal({.open_data = open_pairs,
                       .make_network = [](const DataSplits& /*data*/) { return network(2, 3); }}),
              "it has 3 classes, the data have 2");
  expect_part(refusal({.open_data = open_pairs,
                       .make_network = [](const DataSplits& /*data*/) -> Graph {
                         throw ShapeError("dense fc: expected a vector");
                       }}),
              "the program's network for its data 'pairs': dense fc: expected a vector");
  expect_part(refusal({.open_data = open_pairs}), "lacks a function");
}

TEST(AProgramsWorkload, IsRefusedIfItsMapsHaveAnotherSize) {
  const SampleSpec mapped = mapped_samples({4, 4, 1}, 2, DType::kF32);
  GraphBuilder builder("own-network");
  const NodeId x = builder.input({4, 4, 1}, {.dtype = DType::kF32, .mean = {0}, .stddev = {1}});
  const Graph graph = builder.finish(builder.conv2d(x, "classes", 2, {}));
  const DataSplits data{.name = "pairs",
                        .train = std::make_unique<Pairs>(20, mapped),
                        .test = std::make_unique<Pairs>(4, mapped)};
  expect_part(message_if_thrown<UsageError>(
                  [&] { require_network_fits_data(graph, "it", "its data", data); }),
              "it gives label maps of [2, 2], and those of the data are [4, 4]");
}

TEST(AProgramsWorkload, IsRefusedIfTheDataAreIncomplete) {
  const auto with = [](auto change) {
    return refusal({.open_data =
                        [&](const DataOptions& options) {
                          DataSplits data = open_pairs(options);
                          change(data);
                          return data;
                        },
                    .make_network = make_network});
  };
  expect_part(with([](DataSplits& data) { data.test = nullptr; }), "set DataSplits::train and");
  expect_part(with([](DataSplits& data) { data.train = std::make_unique<Pairs>(0); }),
              "a split has no samples");
  expect_part(with([](DataSplits& data) { data.name = ""; }), "the name is empty");
  expect_part(with([](DataSplits& data) {
                data.test = std::make_unique<Pairs>(4, classified_samples({2}, 3, DType::kF32));
              }),
              "training samples are x f32 [2] with y i32 [] of 2 classes, those of the test split "
              "x f32 [2] with y i32 [] of 3 classes");
  expect_part(with([](DataSplits& data) {
                SampleSpec spec = classified_samples({2}, 2, DType::kF32);
                spec.target.dtype = DType::kI64;
                data.train = std::make_unique<Pairs>(20, spec);
              }),
              "targets are i64; expected i32, classes, or f32, numbers");
  expect_part(with([](DataSplits& data) { data.name = "digits"; }),
              "--data has a data set of this name");
}

// A membership of two tasks of which the other one sends a fixed text.
class BesideATask final : public Membership {
 public:
  explicit BesideATask(std::string theirs) : theirs_(std::move(theirs)) {}
  int index() const noexcept override { return 0; }
  const std::vector<Member>& members() const noexcept override { return members_; }
  const std::string& nonce() const noexcept override { return nonce_; }
  std::chrono::milliseconds peer_timeout() const noexcept override { return {}; }
  std::vector<std::string> exchange(const std::string& mine) override { return {mine, theirs_}; }
  std::optional<std::string> failure() const override { return std::nullopt; }
  void on_failure(std::function<void(const std::string&)> /*callback*/) override {}
  void report_step(std::int64_t /*step*/) noexcept override {}
  std::int64_t lowest_step() const noexcept override { return -1; }
  void leave() override {}
  void fail(std::string_view /*reason*/) noexcept override {}

 private:
  std::string theirs_;
  std::vector<Member> members_{2};
  std::string nonce_;
};

TEST(TasksOfAJob, HaveTheSameNetwork) {
  BesideATask equal(describe_network(network(2, 2)));
  EXPECT_NO_THROW(require_same_network(network(2, 2), equal));
  BesideATask other(describe_network(network(2, 3)));
  const std::string error =
      message_if_thrown<UsageError>([&] { require_same_network(network(2, 2), other); });
  expect_part(error, "network: rank 1 has own-network with hash ");
  expect_part(error, "rank 0 has own-network with hash ");
}

TEST(TasksOfAJob, TellServersTheirNetwork) {
  StrategyOptions strategy;
  const Graph graph = network(2, 2);
  describe_job({.model = "", .data = ""}, graph, open_pairs({}), 8, strategy);
  const auto& agreements = strategy.parameter_server.agreements;
  const auto found = std::ranges::find(agreements, "network", &Agreement::name);
  ASSERT_NE(found, agreements.end());
  EXPECT_EQ(found->value, describe_network(graph));
}

}  // namespace
}  // namespace syncopate
