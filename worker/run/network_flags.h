// The flags that change the network of --model. --head lists the hidden layers before the
// classifier; --normalize gives the mean that the input layer subtracts and the deviation that it
// divides by. Checkpoints store both flags as text.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace syncopate {

struct NetworkFlags {
  std::string head;       // "dense:1016,dense:64"; empty: the classifier alone
  std::string normalize;  // "imagenet", "none", "M,M,M/S,S,S"; empty: the data set's normalization

  bool operator==(const NetworkFlags&) const = default;
};

// Returns the number of features of each hidden layer of a head, such as {1016, 64}. Throws
// UsageError naming --head.
std::vector<int> parse_head(const std::string& text);

// Mean and standard deviation of each channel, for pixels scaled to [0, 1].
struct Normalization {
  std::vector<float> mean;
  std::vector<float> stddev;
};

// Returns the normalization that `text`, a value of --normalize, describes. For "none" the result
// has one mean, 0, and one deviation, 1, whatever the number of channels. Throws UsageError naming
// --normalize.
Normalization parse_normalize(const std::string& text);

// Returns the normalization of samples with `channels` channels: the normalization that `text`
// gives, or `of_data` if `text` is empty. Throws UsageError if the normalization has another number
// of channels.
Normalization choose_normalization(const std::string& text, const Normalization& of_data,
                                   std::size_t channels);

}  // namespace syncopate
