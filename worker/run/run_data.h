// The data of a run and the network that fits the data. All tasks must have the same samples. The
// samples are compared and not their paths, because tasks may have the same data under different
// paths.
#pragma once

#include <string>

#include "models/graph/graph.h"
#include "strategies/cluster/membership.h"
#include "worker/input/dataset.h"
#include "worker/run/network_flags.h"

namespace syncopate {

// Describes all splits as text: the sizes, the shape, the number of classes and hashes of a few
// samples. Throws what the data sets throw.
std::string describe_samples(const DataSplits& data);

// Returns a hash of the labels and the stored bytes of all samples of all splits, as 16 hexadecimal
// digits. Reads the whole data set. Throws what the data sets throw.
std::string hash_of_all_samples(const DataSplits& data);

// Describes the samples and their source for the user: "data digits: 60000 training and 10000 test
// samples, u8 [28, 28, 1], 10 classes".
std::string describe_data(const DataSplits& data, const std::string& data_flag);

// Describes the training split alone. A checkpoint stores this text, because it also stores the
// position in the training data, which is valid only for the same samples. The test split may
// change between runs.
std::string describe_training_samples(const DataSplits& data);

// Returns the sizes from a text of describe_samples() or describe_training_samples(), without the
// hashes, which mean nothing to the user.
std::string sizes_of(const std::string& samples);

// Returns, for a message, how `samples` differs from `others`: the sizes of `samples`, or a note
// that the sizes are equal and only the contents differ. Both arguments are texts of
// describe_samples() or describe_training_samples().
std::string differing_sizes(const std::string& samples, const std::string& others);

// Returns the shape [H, W, C] of the samples from a text of describe_training_samples(); empty if
// the text has no shape of three extents.
Shape recorded_sample_shape(const std::string& training_samples);

// Compares describe_samples() of all tasks; every task calls this function. data_flag: the value of
// --data. Throws UsageError naming the --data of rank 0 and of the first task with other samples.
// Also throws what the data sets throw, and PeerError.
void require_same_data(const DataSplits& data, const std::string& data_flag,
                       Membership& membership);

// Throws UsageError naming --augment and the data if `augment` is not kNone and the samples are not
// images.
void require_images_for(Augment augment, const DataSplits& data, const std::string& data_flag);

// Throws UsageError unless the network has the inputs and the classes of the samples, and a loss
// that takes their targets. what, samples: the names of the network and the data for the error,
// such as "--model mlp" and "--data digits".
void require_network_fits_data(const Graph& graph, const std::string& what,
                               const std::string& samples, const DataSplits& data);

// Returns the name and the hash of a network, which tasks compare.
std::string describe_network(const Graph& graph);

// Compares describe_network() of all tasks; every task calls this function. Throws UsageError
// naming the first task that has another network than rank 0. Also throws PeerError.
void require_same_network(const Graph& graph, Membership& membership);

// Throws UsageError unless the targets of the data are classes. what: the name of the command for
// the error, such as "compare".
void require_classes(const std::string& what, const std::string& data_flag, const DataSplits& data);

// Returns the network `model` for samples with the shape and the number of classes of `data`.
// label_smoothing: see LossOp; only training uses it. Throws UsageError naming --model and --data
// if the samples are too small for the network or the targets do not fit its loss. Also throws what
// the functions of network_flags.h throw.
Graph network_for_data(const std::string& model, const std::string& data_flag,
                       const DataSplits& data, const NetworkFlags& flags = {},
                       float label_smoothing = 0.0F);

// Returns the network with label smoothing in training. Throws UsageError naming `what` if the loss
// is not for classes, or if the network exceeds what a checkpoint can store.
Graph with_label_smoothing(Graph graph, const std::string& what, float label_smoothing);

// Returns a network as a template for a network file of the user. If the targets are classes, this
// is the result of network_for_data(). If the targets are numbers, it is the network `model` with
// the mean squared error as its loss.
Graph network_template(const std::string& model, const std::string& data_flag,
                       const DataSplits& data, const NetworkFlags& flags = {});

}  // namespace syncopate
