// Small data sets in the layouts of TensorFlow Datasets and of OTBTF, for one test.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tests/worker/input/record/record_bytes.h"

namespace syncopate {

// Writes text to a file and makes its folder.
void write_text(const std::filesystem::path& path, const std::string& text);

// The pictures of a split, in shards: shard_lengths[i] records in shard i. Sample n of a split is
// picture_of(n) with class n % 3.
struct TfdsSplitForm {
  std::string name;
  std::vector<int> shard_lengths;
};
// Writes a folder as tfds.load leaves it: data set "tiny", classes ant, bee and cat, features
// "image" and "label".
void write_tfds(const std::filesystem::path& folder, const std::vector<TfdsSplitForm>& splits,
                const std::string& format = "tfrecord");
// Returns a PNG file of 14 x 14 pixels, a function of n.
Bytes picture_of(int n);

// Writes train, valid and test of patches "xs" [16, 16, 2], uint16 or float32, with label maps
// "labels" int32 [16, 16, 1] of classes 0 and 1, as many as named.
struct OtbtfForm {
  int train = 9;
  int valid = 3;
  int test = 3;
  bool is_float = false;
};
void write_otbtf(const std::filesystem::path& folder, const OtbtfForm& form);

}  // namespace syncopate
