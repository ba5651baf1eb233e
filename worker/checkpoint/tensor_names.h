// Finds the tensors of a network in a file where their names have a prefix, such as "module.", or
// contain names of wrappers, such as "_orig_mod". Used by weights_file.cc.
#pragma once

#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "worker/checkpoint/safetensors.h"

namespace syncopate {

class TensorNames {
 public:
  // Finds the prefix that is removed from the names in the file. tensors: the tensors of the file
  // `path`; must outlive this object. wanted: the tensors that the file must have, with shapes in
  // the file's order. If the file has the names of all `wanted` tensors, no prefix is removed.
  // Otherwise the constructor removes a prefix that all `wanted` tensors have in the file. If
  // several prefixes are possible, prefixes of tensors with other shapes and prefixes of moving
  // averages are excluded. Throws UsageError if several prefixes remain.
  TensorNames(const std::vector<TensorEntry>& tensors, std::span<const TensorEntry> wanted,
              const std::filesystem::path& path);

  // Returns the tensor that has this name after the prefix is removed; null if there is none.
  const TensorEntry* find(std::string_view name) const;
  // Describes what was removed from the names: "without the prefix module."; "" if nothing was
  // removed.
  const std::string& note() const noexcept { return note_; }

 private:
  bool is_literal_ = true;
  std::map<std::string, const TensorEntry*, std::less<>> found_;
  std::string note_;
};

// Whether keras_name() has names for this network, which is so for "resnet50-v1" only.
bool has_keras_names(std::string_view network);

// Returns Keras's name of a tensor of resnet50-v1: "conv2_block1_1_conv/kernel" for
// "layer1.0.conv1.weight". The kernels of Keras have the shapes [R, S, C, K] and [in, out]. Returns
// "" for a tensor that the network of Keras does not have.
std::string keras_name(std::string_view name);

}  // namespace syncopate
