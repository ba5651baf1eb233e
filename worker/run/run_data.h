// The data of a run, which all tasks must find alike, and the network that fits the data. Tasks may
// find the same data under different paths, so the samples are compared and not the paths.
#pragma once

#include <string>

#include "models/graph/graph.h"
#include "strategies/cluster/membership.h"
#include "worker/input/dataset.h"
#include "worker/run/network_flags.h"

namespace syncopate {

// Describes all splits: returns the sizes, the shape, the number of classes and hashes of a few
// samples as text. Throws what the data sets throw.
std::string describe_samples(const DataSplits& data);

// Describes the samples and their source for a reader: "data digits: 60000 training and 10000 test
// samples, u8 [28, 28, 1], 10 classes".
std::string describe_data(const DataSplits& data, const std::string& data_flag);

// Describes the training split alone. A checkpoint keeps this text, because its position in the
// samples means nothing in other samples; the test split may change between runs.
std::string describe_training_samples(const DataSplits& data);

// Returns the sizes in a text of describe_samples() or describe_training_samples(), without the
// hashes, which tell a reader nothing.
std::string sizes_of(const std::string& samples);

// Returns for a message what differs from `others` in `samples`, which is another text of one of
// these functions: the sizes, or that only the samples themselves differ.
std::string differing_sizes(const std::string& samples, const std::string& others);

// Returns the shape of the samples that describe_training_samples() has described, with three
// extents; empty if the text has no such shape.
Shape recorded_sample_shape(const std::string& training_samples);

// Every task calls this: compares describe_samples() of all tasks. data_flag: the value of --data.
// Throws UsageError naming the --data of rank 0 and of the first task that differs from it; what
// the data sets throw; PeerError.
void require_same_data(const DataSplits& data, const std::string& data_flag,
                       Membership& membership);

// Throws UsageError naming --augment and the data unless the samples are images or `augment` is
// kNone.
void require_images_for(Augment augment, const DataSplits& data, const std::string& data_flag);

// Throws UsageError naming `what` and `samples` unless a network has the inputs and the classes of
// the samples, and a loss for the targets. what, samples: name the network and the data, such as
// "--model mlp" and "--data digits".
void require_network_fits_data(const Graph& graph, const std::string& what,
                               const std::string& samples, const DataSplits& data);

// Returns the name and the hash of a network, which tasks compare.
std::string describe_network(const Graph& graph);

// Every task calls this: compares describe_network() of all tasks. Throws UsageError naming the
// first task that differs from rank 0; PeerError.
void require_same_network(const Graph& graph, Membership& membership);

// Throws UsageError unless the targets of the data are classes. what: names the
// command, such as "compare".
void require_classes(const std::string& what, const std::string& data_flag, const DataSplits& data);

// Returns the network `model` for samples of this shape and number of classes. label_smoothing: as
// in LossOp; only training uses it. Throws UsageError naming --model and --data when the samples
// are too small for the network or the targets do not fit its loss, and what the functions of
// network_flags.h throw.
Graph network_for_data(const std::string& model, const std::string& data_flag,
                       const DataSplits& data, const NetworkFlags& flags = {},
                       float label_smoothing = 0.0F);

// Returns a network with this smoothing of labels in training. Throws UsageError naming `what` when
// its loss has no classes, or a checkpoint cannot hold it.
Graph with_label_smoothing(Graph graph, const std::string& what, float label_smoothing);

// Returns a network to begin a network file with: the result of network_for_data(), or, where the
// targets are numbers, a network `model` that ends with the mean squared error.
Graph network_template(const std::string& model, const std::string& data_flag,
                       const DataSplits& data, const NetworkFlags& flags = {});

}  // namespace syncopate
