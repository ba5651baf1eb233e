// Provides a small network with every kind of tensor that a checkpoint holds, and files as strings.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "worker/checkpoint/checkpoint.h"

namespace syncopate {

// Returns a network with conv.weight [3, 2, 3, 3], bn.*, fc.weight [classes, 48] and fc.bias; all
// with padding in the arena.
Graph checkpoint_graph(const std::string& name = "small", int classes = 5);

// Returns blocks of the graph's size; element i of block b holds first + 1000 b + i, padding
// included.
Snapshot counting_snapshot(const Graph& graph, const std::vector<std::string>& slots, float first);

// Returns all values, state and slots of a snapshot that belong to tensors; the padding is left
// out.
std::vector<float> tensor_values(const Graph& graph, const Snapshot& snapshot);

const std::vector<std::string>& adam_slots();
Progress some_progress();

std::string read_file(const std::filesystem::path& path);
void write_file(const std::filesystem::path& path, const std::string& bytes);

// Returns the text of the error that load_checkpoint throws, or "" when it throws nothing. Any
// other exception than a FileError or a UsageError fails the test.
std::string load_error(const std::filesystem::path& path, const Graph& graph,
                       const Snapshot& target, const std::string& optimizer = "adam",
                       bool want_slots = true);

}  // namespace syncopate
