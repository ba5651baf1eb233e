#include "worker/train/evaluation_rules.h"

#include <gtest/gtest.h>

#include <cmath>

#include "models/base/errors.h"
#include "models/graph/graph.h"
#include "tests/support/contains.h"
#include "tests/support/thrown.h"

namespace syncopate {
namespace {

Evaluation with_loss(double loss) { return {.loss = loss, .metric = {.value = 0.5}}; }
Evaluation with_accuracy(double accuracy) { return {.loss = 1.0, .metric = {.value = accuracy}}; }

TEST(StopAtRule, EndsTrainingWhenTheMetricIsReached) {
  EvaluationRules accuracy({.stop_at = parse_stop_at("accuracy=0.9")}, {});
  EXPECT_TRUE(accuracy.judge(1, with_accuracy(0.89)).empty());
  EXPECT_FALSE(accuracy.ends_training());
  EXPECT_EQ(accuracy.judge(2, with_accuracy(0.9)).size(), 1U);
  EXPECT_TRUE(accuracy.ends_training());

  EvaluationRules loss({.stop_at = parse_stop_at("val_loss=0.5")}, {});
  loss.judge(1, with_loss(0.51));
  EXPECT_FALSE(loss.ends_training());
  loss.judge(2, with_loss(0.5));
  EXPECT_TRUE(loss.ends_training());
}

TEST(EarlyStopRule, EndsTrainingAfterItsPatience) {
  EvaluationRules rules({.early_stop = parse_early_stop("metric=val_loss,patience=2")}, {});
  std::int64_t step = 0;
  for (const double loss : {3.0, 2.0, 2.5, 1.0, 1.0}) {
    rules.judge(++step, with_loss(loss));
    EXPECT_FALSE(rules.ends_training()) << step;
  }
  rules.judge(++step, with_loss(NAN));  // a loss that is not a number is not better
  EXPECT_TRUE(rules.ends_training());
}

TEST(EarlyStopRule, CountsALowGainAsNone) {
  EvaluationRules rules({.early_stop = parse_early_stop("patience=1,min-delta=0.5")}, {});
  rules.judge(1, with_loss(3.0));
  rules.judge(2, with_loss(2.4));
  EXPECT_FALSE(rules.ends_training());
  rules.judge(3, with_loss(2.0));
  EXPECT_TRUE(rules.ends_training());
}

TEST(StopAtRule, IsNotRevokedByALaterEvaluation) {
  EvaluationRules rules({.stop_at = parse_stop_at("accuracy=0.8"), .keeps_best = true}, {});
  rules.judge(1, with_accuracy(0.8));
  rules.judge(2, with_accuracy(0.7));
  EXPECT_TRUE(rules.ends_training());
  rules.judge(3, with_accuracy(0.9));
  EXPECT_EQ(rules.best_step(), 3);
}

TEST(PlateauRule, LowersTheLearningRateAndBeginsToCountAgain) {
  EvaluationRules rules({.reduce_on_plateau = parse_reduce_on_plateau("factor=0.5,patience=2")},
                        {});
  std::vector<double> factors;
  std::int64_t step = 0;
  for (const double loss : {1.0, 1.0, 1.0, 1.0, 1.0, 0.5, 0.5, 0.5}) {
    rules.judge(++step, with_loss(loss));
    factors.push_back(rules.learning_rate_factor());
  }
  EXPECT_EQ(factors, (std::vector<double>{1.0, 1.0, 0.5, 0.5, 0.25, 0.25, 0.25, 0.125}));
}

TEST(BestRule, NamesTheFirstStepWithTheBestAccuracy) {
  EvaluationRules rules({.keeps_best = true}, {});
  EXPECT_EQ(rules.best_step(), 0);
  std::int64_t step = 0;
  for (const double accuracy : {0.5, 0.8, 0.7, 0.8}) rules.judge(++step, with_accuracy(accuracy));
  EXPECT_EQ(rules.best_step(), 2);
}

TEST(EvaluationRuleState, ContinuesInAnotherProcess) {
  const EvaluationRuleOptions options{
      .early_stop = parse_early_stop("patience=4"),
      .reduce_on_plateau = parse_reduce_on_plateau("factor=0.1,patience=3,metric=accuracy"),
      .keeps_best = true};
  EvaluationRules whole(options, {});
  EvaluationRules parts(options, {});
  std::int64_t step = 0;
  for (const double loss : {3.0, 4.0, 2.5, 2.5, 2.5, 2.6, 2.7}) {
    whole.judge(++step, with_loss(loss));
    parts = EvaluationRules(options, parts.state());
    parts.judge(step, with_loss(loss));
    EXPECT_EQ(parts.state(), whole.state());
    EXPECT_EQ(parts.ends_training(), step == 7);
  }
  parts.judge(step, with_loss(0.1));
  EXPECT_EQ(parts.state(), whole.state()) << "a step is judged once";
}

TEST(EvaluationRuleState, BeginsAgainForAnotherMetric) {
  EvaluationRules loss({.early_stop = parse_early_stop("metric=loss,patience=1")}, {});
  loss.judge(1, with_loss(1.0));
  loss.judge(2, with_loss(1.0));
  ASSERT_TRUE(loss.ends_training());
  EvaluationRules accuracy({.early_stop = parse_early_stop("metric=accuracy,patience=1")},
                           loss.state());
  EXPECT_FALSE(accuracy.ends_training());
  accuracy.judge(3, with_accuracy(0.1));
  EXPECT_FALSE(accuracy.ends_training());
}

Evaluation with_error(double error) {
  return {.loss = 1.0, .metric = {LossKind::kMeanSquaredError, error}};
}

TEST(RulesOfTheMeanAbsoluteError, TakeASmallerOneForBetter) {
  EvaluationRules rules({.stop_at = parse_stop_at("mae=2.5"),
                         .early_stop = parse_early_stop("metric=val_mae,patience=2"),
                         .keeps_best = true},
                        {});
  rules.judge(1, with_error(4.0));
  rules.judge(2, with_error(3.0));
  rules.judge(3, with_error(3.5));
  EXPECT_EQ(rules.best_step(), 2);
  EXPECT_FALSE(rules.ends_training());
  rules.judge(4, with_error(2.5));
  EXPECT_TRUE(rules.ends_training());
}

TEST(RulesOfTheMeanAbsoluteError, KeepTheBestWithoutANamedMetric) {
  EvaluationRules rules({.keeps_best = true}, {});
  rules.judge(1, with_error(4.0));
  rules.judge(2, with_error(3.0));
  rules.judge(3, with_error(3.5));
  EXPECT_EQ(rules.best_step(), 2);
}

TEST(RulesOfTheMeanIou, TakeMoreAsBetter) {
  const auto with_iou = [](double iou) {
    return Evaluation{.loss = 1.0, .metric = {.value = 0.9, .mean_iou = iou}};
  };
  EvaluationRules rules({.stop_at = parse_stop_at("mean_iou=0.7"),
                         .early_stop = parse_early_stop("metric=val_mean_iou,patience=2"),
                         .keeps_best = true},
                        {});
  rules.judge(1, with_iou(0.6));
  rules.judge(2, with_iou(0.5));
  EXPECT_EQ(rules.best_step(), 1);
  EXPECT_FALSE(rules.ends_training());
  rules.judge(3, with_iou(0.7));
  EXPECT_EQ(rules.ending_rule(), "--stop-at mean_iou=0.7");
  EXPECT_EQ(EvaluationRules({.stop_at = parse_stop_at("mean_iou=0.7"),
                             .early_stop = parse_early_stop("metric=mean_iou,patience=2")},
                            rules.state())
                .ending_rule(),
            "--stop-at mean_iou=0.7");
}

// Returns a network with this loss for inputs of this shape.
Graph network_with(LossKind kind, const Shape& shape) {
  GraphBuilder build("rules");
  return build.finish(build.input(shape, {.dtype = DType::kF32}), {.kind = kind});
}

TEST(RulesOfAResumedRun, ForgetTheBestOfARunThatKeptNone) {
  EvaluationRules first({.keeps_best = true}, {});
  first.judge(1, with_loss(1.0));
  EvaluationRules between({.stop_at = parse_stop_at("loss=0.1")}, first.state());
  between.judge(2, with_loss(2.0));
  const EvaluationRules last({.keeps_best = true}, between.state());
  EXPECT_EQ(last.best_step(), 0) << "the checkpoint of step 1 may be removed";
}

TEST(RulesOfAResumedRun, RefuseTheStateOfAnotherProgram) {
  EvaluationRules rules({.keeps_best = true}, {});
  std::vector<double> state = rules.state();
  state.pop_back();
  EXPECT_THROW(EvaluationRules({.keeps_best = true}, state), FileError);
}

TEST(StopAtAShare, SuggestsAFractionForAPercentage) {
  EXPECT_TRUE(contains(message_of<UsageError>([&] { parse_stop_at("accuracy=97"); }),
                       "did you mean accuracy=0.97?"));
}

TEST(RulesOfAMetricThatTheLossLacks, AreRefused) {
  const EvaluationRuleOptions accuracy{.stop_at = parse_stop_at("accuracy=0.5")};
  const EvaluationRuleOptions error{.early_stop = parse_early_stop("metric=mae,patience=1")};
  const EvaluationRuleOptions loss{.reduce_on_plateau =
                                       parse_reduce_on_plateau("metric=loss,patience=1")};
  EXPECT_NO_THROW(require_metrics_of(network_with(LossKind::kBinaryCrossEntropy, {3}), accuracy));
  EXPECT_THROW(require_metrics_of(network_with(LossKind::kMeanSquaredError, {3}), accuracy),
               UsageError);
  EXPECT_NO_THROW(require_metrics_of(network_with(LossKind::kMeanSquaredError, {3}), error));
  EXPECT_THROW(require_metrics_of(network_with(LossKind::kSoftmaxCrossEntropy, {3}), error),
               UsageError);
  EXPECT_NO_THROW(require_metrics_of(network_with(LossKind::kMeanSquaredError, {3}), loss));
  const EvaluationRuleOptions iou{.stop_at = parse_stop_at("mean_iou=0.5")};
  EXPECT_NO_THROW(require_metrics_of(network_with(LossKind::kSoftmaxCrossEntropy, {4, 4, 3}), iou));
  EXPECT_THROW(require_metrics_of(network_with(LossKind::kSoftmaxCrossEntropy, {3}), iou),
               UsageError);
}

TEST(EvaluationRuleState, IsEmptyWithoutRules) {
  EvaluationRules rules({}, {});
  rules.judge(1, with_loss(1.0));
  EXPECT_TRUE(rules.state().empty());
}

TEST(EvaluationRuleText, ReadsBack) {
  EXPECT_EQ(to_text(parse_stop_at("val_accuracy=0.97")), "accuracy=0.97");
  EXPECT_EQ(to_text(parse_early_stop("patience=3,min-delta=0.01")),
            "metric=loss,patience=3,min-delta=0.01");
  EXPECT_EQ(to_text(parse_reduce_on_plateau("patience=2,factor=0.5")),
            "factor=0.5,metric=loss,patience=2");
}

TEST(EvaluationRuleText, IsRefusedWhereItIsNoRule) {
  for (const char* text : {"", "0.97", "accuracy=97", "accuracy=x", "f1=0.5", "loss=-1",
                           "loss=1,accuracy=0.5", "accuracy=0,97"}) {
    EXPECT_THROW(parse_stop_at(text), UsageError) << text;
  }
  for (const char* text : {"", "3", "patience=0", "patience=1.5", "patience=2,factor=0.1",
                           "metric=f1,patience=1", "min-delta=-1"}) {
    EXPECT_THROW(parse_early_stop(text), UsageError) << text;
  }
  for (const char* text : {"", "factor=1", "factor=0", "factor=nan", "patience=2,rate=0.1"}) {
    EXPECT_THROW(parse_reduce_on_plateau(text), UsageError) << text;
  }
}

}  // namespace
}  // namespace syncopate
