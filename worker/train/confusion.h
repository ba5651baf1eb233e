// Counts which classes a network takes for which. Filled by an evaluation for `syncopate evaluate`.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "models/backend/model.h"

namespace syncopate {

// The quality of one class. Precision: of the samples taken for the class, the fraction that is of
// the class; recall: of its samples, the fraction that is taken for it. Nothing: 0 / 0.
struct ClassQuality {
  std::int64_t samples = 0;    // samples of the class; of label maps, pixels
  std::int64_t predicted = 0;  // samples taken for the class
  std::optional<double> precision;
  std::optional<double> recall;
  // Intersection over union: samples of the class that are taken for it, divided by those that are
  // one or the other.
  std::optional<double> iou;
};

// One thread only.
class ConfusionMatrix {
 public:
  explicit ConfusionMatrix(std::int64_t num_classes) : num_classes_(num_classes) {}

  // Counts the samples of a batch: each is taken for the class of its largest logit, the first of
  // equal ones, as in the metric "accuracy". logits: [N, classes] f32; targets: [N] i32. Of label
  // maps, [N, H, W, classes] and [N, H, W], the pixels that count.
  void add(const Tensor& logits, const Tensor& targets);

  // Returns the counts that are not zero, by (target, predicted class). Memory grows with the
  // samples and not with the square of the classes.
  const std::map<std::pair<std::int32_t, std::int32_t>, std::int64_t>& counts() const noexcept {
    return counts_;
  }
  std::vector<ClassQuality> classes() const;
  // Returns the mean IoU of the classes that samples or predictions have; nothing if there are
  // none.
  std::optional<double> mean_iou() const;

 private:
  std::int64_t num_classes_;
  std::map<std::pair<std::int32_t, std::int32_t>, std::int64_t> counts_;
};

}  // namespace syncopate
