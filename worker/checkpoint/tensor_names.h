// Finds the tensors of a network in a file that has its names with something in front, such as
// "module.", or with names of wrappers between, such as "_orig_mod". Used by weights_file.cc.
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
  // wanted: names and shapes, as the file has them, of tensors that the file must have. Names are
  // taken as they are if all of `wanted` are there. Otherwise a prefix is removed: one that all of
  // `wanted` have in the file. Of several such prefixes, one with fitting shapes that is not a
  // moving average's is taken. Throws UsageError when several remain. `tensors` outlives this
  // object.
  TensorNames(const std::vector<TensorEntry>& tensors, std::span<const TensorEntry> wanted,
              const std::filesystem::path& path);

  // Returns the tensor with this name, without the prefix; null when there is none.
  const TensorEntry* find(std::string_view name) const;
  // Says what was left out of the names: "without the prefix module."; "" if nothing was.
  const std::string& note() const noexcept { return note_; }

 private:
  bool is_literal_ = true;
  std::map<std::string, const TensorEntry*, std::less<>> found_;
  std::string note_;
};

}  // namespace syncopate
