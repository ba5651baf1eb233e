#include "worker/run/network_flags.h"

#include <fmt/format.h>

#include <cmath>
#include <sstream>
#include <string_view>

#include "models/base/errors.h"
#include "models/base/parse_number.h"

namespace syncopate {
namespace {

constexpr int kMostFeatures = 1 << 20;
constexpr std::size_t kMostLayers = 16;

// Returns the numbers of a list with commas between; empty when one is none.
std::vector<float> read_list(const std::string& text) {
  std::vector<float> numbers;
  std::istringstream items(text);
  for (std::string item; std::getline(items, item, ',');) {
    const auto number = parse_number<float>(item);
    if (!number || !std::isfinite(*number)) return {};
    numbers.push_back(*number);
  }
  return numbers;
}

}  // namespace

std::vector<int> parse_head(const std::string& text) {
  std::vector<int> features;
  std::istringstream layers(text);
  constexpr std::string_view kDense = "dense:";
  for (std::string layer; std::getline(layers, layer, ',');) {
    const int count =
        layer.starts_with(kDense) ? parse_number<int>(layer.substr(kDense.size())).value_or(0) : 0;
    if (count < 1 || count > kMostFeatures || features.size() == kMostLayers) {
      throw UsageError(fmt::format(
          "--head {}: expected up to {} layers with commas between, each of 1 to {} features, such "
          "as dense:1016 or dense:1016,dense:64",
          text, kMostLayers, kMostFeatures));
    }
    features.push_back(count);
  }
  return features;
}

Normalization parse_normalize(const std::string& text) {
  if (text == "none") return {{0.0F}, {1.0F}};
  // Source: the means and deviations of ImageNet's training split in torchvision and timm.
  if (text == "imagenet") return {{0.485F, 0.456F, 0.406F}, {0.229F, 0.224F, 0.225F}};
  const std::size_t slash = text.find('/');
  Normalization numbers;
  if (slash != std::string::npos) {
    numbers = {read_list(text.substr(0, slash)), read_list(text.substr(slash + 1))};
  }
  bool is_valid = !numbers.mean.empty() && numbers.mean.size() == numbers.stddev.size();
  for (const float deviation : numbers.stddev) is_valid = is_valid && deviation > 0.0F;
  if (is_valid) return numbers;
  throw UsageError(fmt::format(
      "--normalize {}: expected imagenet, none, or means / deviations of pixels scaled to [0, 1], "
      "one of each per channel, such as 0.5,0.5,0.5/0.25,0.25,0.25",
      text));
}

Normalization choose_normalization(const std::string& text, const Normalization& of_data,
                                   std::size_t channels) {
  if (text.empty()) return of_data;
  Normalization chosen = parse_normalize(text);
  if (text == "none") {
    chosen.mean.resize(channels, chosen.mean.front());
    chosen.stddev.resize(channels, chosen.stddev.front());
  }
  if (chosen.mean.size() == channels) return chosen;
  throw UsageError(
      fmt::format("--normalize {} has means for {}, the samples have {} (channels); give one mean "
                  "and one deviation per channel, or --normalize none",
                  text, chosen.mean.size(), channels));
}

}  // namespace syncopate
