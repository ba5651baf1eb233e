// Counts pairs of true and predicted class in an evaluation.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "models/backend/model.h"

namespace syncopate {

// The counts of one class. Counts of several batches and tasks can be added. For label maps, pixels
// are counted instead of samples.
struct ClassCounts {
  std::int64_t samples = 0;    // samples of the class
  std::int64_t predicted = 0;  // samples that are predicted as the class
  std::int64_t correct = 0;    // samples of the class that are predicted as the class

  ClassCounts& operator+=(const ClassCounts& other) noexcept;
  // Returns `correct` / `predicted`: the fraction of the samples predicted as this class that are
  // of this class. precision(), recall() and iou() return nullopt for 0 / 0.
  std::optional<double> precision() const;
  // Returns `correct` / `samples`: the fraction of the samples of this class that are predicted as
  // this class.
  std::optional<double> recall() const;
  // Returns the intersection over union: `correct` divided by the number of samples that have the
  // class or are predicted to have it.
  std::optional<double> iou() const;
};

// Returns the mean IoU over the classes that occur in samples or predictions; nullopt if no class
// occurs.
std::optional<double> mean_iou(std::span<const ClassCounts> classes);

// Counts how often each class is predicted as each class in an evaluation. One thread only.
class ConfusionMatrix {
 public:
  explicit ConfusionMatrix(std::int64_t num_classes) : num_classes_(num_classes) {}

  // Counts the samples of a batch. The predicted class is the class with the largest logit, and the
  // first of equal logits, as in the metric "accuracy". logits: [N, classes] f32; targets: [N] i32.
  // For label maps, with logits [N, H, W, classes] and targets [N, H, W], counts the pixels that
  // have a class.
  void add(const Tensor& logits, const Tensor& targets);
  // Adds `count` samples of class `target` that are predicted as class `predicted`.
  void add(std::int32_t target, std::int32_t predicted, std::int64_t count);

  // Returns the counts above 0. The key of a count is the pair (true class, predicted class).
  // Memory grows with the number of samples and not with the square of the number of classes.
  const std::map<std::pair<std::int32_t, std::int32_t>, std::int64_t>& counts() const noexcept {
    return counts_;
  }
  std::vector<ClassCounts> classes() const;
  std::int64_t num_classes() const noexcept { return num_classes_; }

 private:
  std::int64_t num_classes_;
  std::map<std::pair<std::int32_t, std::int32_t>, std::int64_t> counts_;
};

}  // namespace syncopate
