// The operators of ONNX that enlarge maps: Resize, the repetition of rows and columns, and Pad.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "deploy/onnx/onnx_operators.h"
#include "models/base/errors.h"

namespace syncopate {
namespace {

using proto::onnx::NodeProto;

constexpr std::int64_t kLargestScale = 128;
constexpr std::int64_t kMostPadding = 127;

// Returns the pixel that a nearest Resize reads for pixel `out`, or -1 for a mode that is not
// known.
std::int64_t nearest_pixel(std::int64_t out, std::int64_t scale, std::string_view place,
                           std::string_view rounding) {
  const auto s = static_cast<double>(scale);
  const auto o = static_cast<double>(out);
  double at = 0.0;
  if (place == "half_pixel" || place == "pytorch_half_pixel") {
    at = (o + 0.5) / s - 0.5;
  } else if (place == "asymmetric") {
    at = o / s;
  } else if (place == "tf_half_pixel_for_nn") {
    at = (o + 0.5) / s;
  } else {
    return -1;
  }
  if (rounding == "floor") return static_cast<std::int64_t>(std::floor(at));
  if (rounding == "ceil") return static_cast<std::int64_t>(std::ceil(at));
  if (rounding == "round_prefer_floor") return static_cast<std::int64_t>(std::ceil(at - 0.5));
  if (rounding == "round_prefer_ceil") return static_cast<std::int64_t>(std::floor(at + 0.5));
  return -1;
}

// Whether a nearest Resize repeats each pixel. Pixels that are not at the border decide.
bool repeats_pixels(std::int64_t scale, std::string_view place, std::string_view rounding) {
  for (std::int64_t out = scale; out < 2 * scale; ++out) {
    if (nearest_pixel(out, scale, place, rounding) != 1) return false;
  }
  return true;
}

void check_resize(const OnnxAttributes& attributes) {
  const std::string mode = attributes.text("mode", "nearest");
  const std::string place = attributes.text("coordinate_transformation_mode", "half_pixel");
  if (mode != "nearest" && mode != "linear") throw UsageError("with the mode " + shown_name(mode));
  if (mode == "linear" && place != "half_pixel" && place != "pytorch_half_pixel") {
    throw UsageError("with the mode linear and " + shown_name(place) + "; expected half_pixel");
  }
  if (attributes.integer("antialias", 0) != 0) throw UsageError("with antialias");
}

// Returns how often Resize repeats or divides each side of x, all sides with N.
std::vector<double> scales_of(OnnxReading& net, const NodeProto& node, const OnnxValue& x,
                              const OnnxAttributes& attributes) {
  const Shape sides = net.forms.shape_of(x);
  const OnnxConstant* scales = net.graph.constant(node, 2);
  if (scales != nullptr && num_elements(scales->shape) == 0) scales = nullptr;
  const OnnxConstant* sizes = net.graph.constant(node, 3);
  const OnnxConstant* given = scales != nullptr ? scales : sizes;
  auto numbers = given == nullptr ? std::nullopt : net.constants.numbers(*given);
  std::vector<std::int64_t> axes = attributes.integers("axes");
  if (axes.empty()) {
    for (std::size_t i = 0; i < sides.size(); ++i) axes.push_back(static_cast<std::int64_t>(i));
  }
  if (!numbers || numbers->size() != axes.size()) {
    throw UsageError("whose scales or sizes are not constant");
  }
  std::vector<double> all(sides.size(), 1.0);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::int64_t axis = axis_of(axes[i], sides.size());
    if (axis < 0 || axis >= static_cast<std::int64_t>(sides.size())) {
      throw UsageError(fmt::format("over axis {}", axis));
    }
    const auto at = static_cast<std::size_t>(axis);
    const double number = (*numbers)[i];
    all[at] = given == scales ? number : number / static_cast<double>(sides[at]);
  }
  if (net.forms.batch() == -1 && given == sizes) all[0] = 1.0;  // the size of N that is not fixed
  return all;
}

OnnxValue upsampled(OnnxReading& net, const OnnxValue& x, std::int64_t scale, Interpolation mode) {
  OnnxValue result = x;
  result.repeated_rows = 1;
  if (scale == 1) return result;
  result.node = net.build.upsample2d(x.node, {.scale = static_cast<int>(scale), .mode = mode});
  return result;
}

void add_resize(OnnxReading& net, const NodeProto& node, const OnnxAttributes& attributes) {
  OnnxValue x = net.value(node, 0);
  const std::vector<double> scales = scales_of(net, node, x, attributes);
  std::vector<double> expected(scales.size(), 1.0);
  // A Reshape of a vector does not say which axis has the channels; the scales do.
  if (x.form == OnnxForm::kChannelsLast && scales[1] == 1.0 && scales[3] != 1.0)
    x = net.forms.as_map(x);
  const bool is_first = x.form == OnnxForm::kChannelsFirst;
  if (!is_first && x.form != OnnxForm::kChannelsLast) {
    throw UsageError(fmt::format("of {}; expected a map", net.forms.shown_shape(x)));
  }
  const double scale = scales[is_first ? 2 : 1];
  for (std::size_t i = 0; i < 2; ++i) expected[i + (is_first ? 2 : 1)] = scale;
  const bool is_whole =
      scale >= 1.0 && scale <= static_cast<double>(kLargestScale) && std::floor(scale) == scale;
  if (scales != expected || !is_whole) {
    throw UsageError(
        fmt::format("by {}; expected one whole number for H and W", fmt::join(scales, ", ")));
  }
  const auto whole = static_cast<std::int64_t>(scale);
  const bool is_linear = attributes.text("mode", "nearest") == "linear";
  const std::string place = attributes.text("coordinate_transformation_mode", "half_pixel");
  const std::string rounding = attributes.text("nearest_mode", "round_prefer_floor");
  if (!is_linear && whole > 1 && !repeats_pixels(whole, place, rounding)) {
    throw UsageError(fmt::format("with {} and {}; expected that pixels are repeated",
                                 shown_name(place), shown_name(rounding)));
  }
  net.set(node,
          upsampled(net, x, whole, is_linear ? Interpolation::kBilinear : Interpolation::kNearest));
}

// Rows are repeated first and wait for the columns.
void add_repeat(OnnxReading& net, const NodeProto& node, const OnnxAttributes& attributes) {
  const OnnxValue& x = net.pending_value(node, 0);
  const std::int64_t axis = attributes.integer("axis", 0);
  const std::int64_t count = attributes.integer("count", 0);
  const bool is_map = x.form == OnnxForm::kChannelsFirst || x.form == OnnxForm::kChannelsLast;
  const std::int64_t row = x.form == OnnxForm::kChannelsFirst ? 2 : 1;
  if (!is_map || x.pad != 0 || count < 2 || count > kLargestScale) {
    throw UsageError(fmt::format("that repeats {} {} times", net.forms.shown_shape(x), count));
  }
  if (axis == row && x.repeated_rows == 1) {
    OnnxValue result = x;
    result.repeated_rows = static_cast<int>(count);
    return net.set(node, std::move(result));
  }
  if (axis != row + 1 || x.repeated_rows != count) {
    throw UsageError(fmt::format(
        "that repeats axis {} of {} {} times; expected rows, then columns, equally often", axis,
        net.forms.shown_shape(x), count));
  }
  net.set(node, upsampled(net, x, count, Interpolation::kNearest));
}

// The convolution or the pool behind a Pad adds the zeros.
void add_pad(OnnxReading& net, const NodeProto& node, const OnnxAttributes& attributes) {
  const OnnxValue& x = net.value(node, 0);
  const std::string mode = attributes.text("mode", "constant");
  if (mode != "constant") throw UsageError("with the mode " + shown_name(mode));
  const auto filling = has_input(node, 2) ? net.constants.number(node.input(2)) : 0.0;
  if (filling != 0.0) throw UsageError("with another number than 0");
  const auto pads = net.constants.integers(node.input(1));
  const std::size_t rank = net.forms.shape_of(x).size();
  std::vector<std::int64_t> axes(rank);
  for (std::size_t i = 0; i < rank; ++i) axes[i] = static_cast<std::int64_t>(i);
  if (has_input(node, 3)) {
    const auto given = net.constants.integers(node.input(3));
    if (!given) throw UsageError("of axes that are not constant");
    axes = *given;
  }
  if (!pads || pads->size() != 2 * axes.size()) throw UsageError("by pads that are not constant");
  const bool is_first = x.form == OnnxForm::kChannelsFirst;
  if (!is_first && x.form != OnnxForm::kChannelsLast) {
    throw UsageError(fmt::format("of {}; expected a map", net.forms.shown_shape(x)));
  }
  std::array<std::array<int, 2>, 2> sides{};  // of rows and columns: before, behind
  for (std::size_t i = 0; i < pads->size(); ++i) {
    const std::int64_t pad = (*pads)[i];
    if (pad == 0) continue;
    const std::int64_t at = axis_of(axes[i % axes.size()], rank) - (is_first ? 2 : 1);
    if (at < 0 || at > 1 || pad < 0 || pad > kMostPadding) {
      throw UsageError(fmt::format("by {}; expected zeros around H and W", fmt::join(*pads, ", ")));
    }
    sides[static_cast<std::size_t>(at)][i / axes.size()] = static_cast<int>(pad);
  }
  OnnxValue result = x;
  result.pad = {sides[0][0], sides[1][0], sides[0][1], sides[1][1]};
  net.set(node, std::move(result));
}

}  // namespace

std::span<const OnnxRow> resize_rows() {
  static constexpr OnnxRow kRows[] = {
      {"Resize", 1,
       "antialias axes coordinate_transformation_mode cubic_coeff_a exclude_outside "
       "extrapolation_value keep_aspect_ratio_policy mode nearest_mode",
       add_resize, check_resize},
      {"syncopate.joined::Repeat", 1, "axis count", add_repeat},
      {"Pad", 2, "mode", add_pad}};
  return kRows;
}

}  // namespace syncopate
