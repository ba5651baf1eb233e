// Every kind of group, by its maker.
#pragma once

#include <memory>

#include "models/backend/cpu/group.h"
#include "models/backend/statistics_reducer.h"

namespace syncopate {

// Where the lanes of one batch norm leave their sums for each other: [lanes][2 * channels + 1]
// doubles, the last one the count of values per channel. Forward and backward have one each, so
// that a lane that is ahead overwrites nothing.
struct BatchNormSums {
  BatchNormSums(int lanes, std::int64_t channels, StatisticsReducer* reducer);

  double* of_lane(int lane) {
    return slots.data() + static_cast<std::size_t>(lane) * static_cast<std::size_t>(width);
  }
  // After every lane has written its slot: the sums over lanes in lane order, then over replicas.
  // The same on every lane. Throws PeerError.
  std::span<const double> total(LanePool& lanes, int lane);

  std::int64_t width;  // 2 * channels + 1
  std::vector<double> slots;
  std::vector<double> totals;
  StatisticsReducer* reducer;
};

struct BatchNormShared {
  BatchNormShared(int lanes, std::int64_t channels, StatisticsReducer* reducer)
      : forward(lanes, channels, reducer), backward(lanes, channels, reducer) {}
  BatchNormSums forward;
  BatchNormSums backward;
};

std::unique_ptr<Group> make_input_group(const GroupContext& context, const FusedGroup& group,
                                        const ValueType& output);
// conv2d (+ bias) (+ ReLU)
std::unique_ptr<Group> make_conv_group(const GroupContext& context, const FusedGroup& group,
                                       const ValueType& input, const ValueType& output,
                                       bool wants_input_gradient);
// conv2d on the samples + ReLU + max-pool
std::unique_ptr<Group> make_conv_pool_group(const GroupContext& context, const FusedGroup& group,
                                            const ValueType& input, const ValueType& output);
// batch_norm (+ add) (+ ReLU)
std::unique_ptr<Group> make_batch_norm_group(const GroupContext& context, const FusedGroup& group,
                                             const ValueType& output, BatchNormShared& shared);
std::unique_ptr<Group> make_relu_group(const GroupContext& context, const ValueType& output);
std::unique_ptr<Group> make_add_group(const GroupContext& context, const ValueType& output);
std::unique_ptr<Group> make_max_pool_group(const GroupContext& context, const FusedGroup& group,
                                           const ValueType& input, const ValueType& output);
std::unique_ptr<Group> make_global_average_pool_group(const GroupContext& context,
                                                      const ValueType& input);
std::unique_ptr<Group> make_flatten_group(const GroupContext& context, const ValueType& input);
std::unique_ptr<Group> make_shortcut_group(const GroupContext& context, const FusedGroup& group,
                                           const ValueType& input, const ValueType& output);
// dense (+ ReLU)
std::unique_ptr<Group> make_dense_group(const GroupContext& context, const FusedGroup& group,
                                        const ValueType& input, const ValueType& output,
                                        bool wants_input_gradient);
std::unique_ptr<Group> make_loss_group(const GroupContext& context, const ValueType& input);

}  // namespace syncopate
