// Small data sets in the layouts of TensorFlow Datasets and of OTBTF, for one test.
#pragma once

#include <cstdint>
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
enum class TfdsPictures {
  kPng,   // picture_of(n)
  kJpeg,  // of several sizes, each with a feature "image/filename", as in Cassava
};
// Writes a folder as tfds.load leaves it: data set "tiny", classes ant, bee and cat, features
// "image" and "label".
void write_tfds(const std::filesystem::path& folder, const std::vector<TfdsSplitForm>& splits,
                const std::string& format = "tfrecord", TfdsPictures pictures = TfdsPictures::kPng);
// Returns a PNG file of 14 x 14 pixels, a function of n.
Bytes picture_of(int n);

// Writes train, valid and test of patches "xs" [side, side, channels], uint16 or float32, with
// label maps "labels" int32 [side, side, 1] of classes 0 and 1, as many as named. Patch n is
// patch_of(n, form); train has the first ones, and test the last ones.
struct OtbtfForm {
  int train = 9;
  int valid = 3;
  int test = 3;
  bool is_float = false;
  int side = 16;
  int channels = 2;
  int num_uncounted = 0;  // pixels of each label map, the first ones, with class 255
  int label_side = 0;     // of label maps of a wrong size; 0: they have the right one
};
struct Patch {
  std::vector<std::uint16_t> values;  // [side, side, channels]
  std::vector<std::int32_t> labels;   // [side, side]
};
Patch patch_of(int n, const OtbtfForm& form);
void write_otbtf(const std::filesystem::path& folder, const OtbtfForm& form);

}  // namespace syncopate
