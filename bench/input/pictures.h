// The options of `syncopate-bench input`, and its run with --data images:DIR or tfds:DIR. Compares
// decoding on one core with libjpeg-turbo, and the whole input pipeline with tf.data and, for
// images:DIR, also with PyTorch's DataLoader.
#pragma once

#include <string>

#include "worker/input/batches/batch_source.h"
#include "worker/input/dataset.h"

namespace syncopate::bench {

struct InputBenchOptions {
  std::string data_flag = "digits";  // the value of --data
  DataOptions data;
  InputOptions input;
  // The Python interpreter for bench/peers/input_peer.py; empty: no peers.
  std::string peer_python;
  std::string json_file;
  int rounds = 7;
  double seconds_per_round = 1.0;
  bool quick = false;
  // The network that consumes the samples of other data than pictures, and its compute threads.
  std::string model = "mnist-cnn";
  int lanes = 1;
};

// Measures decoding on one core, then the whole input pipeline, and prints a table for each. Throws
// UsageError, FileError and PeerError.
void measure_pictures(const InputBenchOptions& options);

// Takes batches for about `seconds` and returns the samples per second. The first batch, which
// starts the threads of the source, is not counted. Throws what the source throws.
double take_batches(BatchSource& source, double seconds);

}  // namespace syncopate::bench
