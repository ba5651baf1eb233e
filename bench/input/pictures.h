// Runs `syncopate-bench input` with --data images:DIR or tfds:DIR. Compares decoding on one core
// with libjpeg-turbo, and the whole input pipeline with tf.data and, for images:DIR, also with
// PyTorch's DataLoader.
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
  // The Python interpreter for bench/peers/input_peer.py; empty: no peers.
  std::string peer_python;
  std::string json_file;
  int rounds = 7;
  double seconds_per_round = 1.0;
};

// Measures decoding on one core, then the whole input pipeline, and prints a table for each. Throws
// UsageError, FileError and PeerError.
void measure_pictures(const PicturesOptions& options);

}  // namespace syncopate::bench
