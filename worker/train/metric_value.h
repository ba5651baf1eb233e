// A value of the main metric of a loss, such as "accuracy 98.10%" or "mae 0.0312". The value is a
// mean over samples. For label maps, the value is a mean over pixels, and MetricValue also has the
// mean IoU. Used by progress lines, metrics files, evaluation rules and commands.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/graph/graph.h"
#include "worker/train/confusion.h"

namespace syncopate {

struct MetricValue {
  LossKind loss = LossKind::kSoftmaxCrossEntropy;
  double value = 0.0;
  std::optional<double> mean_iou = {};  // for evaluations of label maps; nullopt for others

  const LossMetric& metric() const noexcept { return metrics(loss)[kMainMetric]; }
  std::string_view name() const noexcept { return metric().name; }
  bool operator==(const MetricValue&) const = default;
};

// Returns the value and the mean IoU without the metric's name: "98.10%, mean IoU 93.25%".
// Fractions are in percent; other numbers have five digits.
std::string to_text(const MetricValue& metric);

// The result of an evaluation of a split.
struct Evaluation {
  double loss = 0.0;        // mean over the samples of the data set
  MetricValue metric = {};  // the main metric of the network's loss
  std::int64_t samples = 0;
  double seconds = 0.0;
  std::int64_t bad_samples = 0;  // samples that could not be read and are left out
  std::string first_bad = {};    // why the first bad sample could not be read
  // For label maps, the counts of pixels of each class; empty for other networks.
  std::vector<ClassCounts> classes = {};
  // Counts of pairs of true and predicted class; null if they were not counted.
  std::shared_ptr<const ConfusionMatrix> confusion = {};
};

}  // namespace syncopate
