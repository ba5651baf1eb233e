// The flags that change the network of --model: --head, the layers before its classifier, and
// --normalize, what its input subtracts and divides by. Checkpoints keep both as text.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace syncopate {

struct NetworkFlags {
  std::string head;       // "dense:1016,dense:64"; empty: the classifier alone
  std::string normalize;  // "imagenet", "none", "M,M,M/S,S,S"; empty: as the data set says

  bool operator==(const NetworkFlags&) const = default;
};

// Returns the features of the hidden layers of a head: {1016, 64}. Throws UsageError naming --head.
std::vector<int> parse_head(const std::string& text);

// Mean and deviation by channel, of pixels scaled to [0, 1].
struct Normalization {
  std::vector<float> mean;
  std::vector<float> stddev;
};

// Returns the value of --normalize, with one mean and one deviation for "none". Throws UsageError
// naming --normalize.
Normalization parse_normalize(const std::string& text);

// Returns the normalization of samples with this number of channels; an empty `text` means the data
// set's. Throws UsageError when the numbers of channels differ.
Normalization choose_normalization(const std::string& text, const Normalization& of_data,
                                   std::size_t channels);

}  // namespace syncopate
