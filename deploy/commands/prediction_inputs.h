// Reads the samples for `syncopate predict` from pictures, .npy files and tables.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "models/graph/graph.h"

namespace syncopate {

// Reads the samples of one file, for which a network predicts. One thread only.
class PredictionInput {
 public:
  virtual ~PredictionInput() = default;
  virtual std::int64_t size() const noexcept = 0;
  // True for an array or a table of several samples; false for a file that is one sample.
  virtual bool has_rows() const noexcept { return false; }
  // Reads sample `index` into `sample`, which has the size of the network's input. Throws
  // FileError.
  virtual void read(std::int64_t index, std::span<std::byte> sample) = 0;
};

// What a checkpoint records about the samples on which its network was trained.
struct InputForm {
  const Node& input;  // the network's input
  bool apply_exif = false;
  std::string table_columns;  // see DataSplits::table_columns
};

// Opens a file. A file named .npy is an array. A file named .csv, .csv.gz or .csv.zst is a table. A
// file with another name is a table if the network was trained on a table, else a picture. Throws
// UsageError if the network does not take such samples, and FileError if the file cannot be read.
std::unique_ptr<PredictionInput> open_prediction_input(const std::string& path,
                                                       const InputForm& form);

}  // namespace syncopate
