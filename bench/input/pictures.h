// syncopate-bench input --data images:DIR or tfds:DIR: decoding on one core beside libjpeg-turbo,
// and the whole pipeline beside tf.data and, for images:DIR, PyTorch's DataLoader.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "worker/input/batches/batch_source.h"
#include "worker/input/dataset.h"

namespace syncopate::bench {

struct PicturesOptions {
  std::string data_flag;  // "images:DIR" or "tfds:DIR"
  DataOptions data;
  InputOptions input;
  std::string peer_python;  // interpreter of bench/peers/input_peer.py; empty: no peers
  std::string json_file;
  int rounds = 7;
  double seconds_per_round = 1.0;
};

// Measures and prints both tables. Throws UsageError, FileError and PeerError.
void measure_pictures(const PicturesOptions& options);

}  // namespace syncopate::bench
