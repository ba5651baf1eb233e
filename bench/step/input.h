// Runs `syncopate-bench input`; input_command.cc declares its flags.
#pragma once

#include <filesystem>
#include <string>

#include "worker/input/batch_source.h"

namespace syncopate::bench {

struct InputBenchOptions {
  std::string data = "digits";
  std::string model = "mnist-cnn";  // The model that consumes the samples.
  std::string augment = "none";
  std::filesystem::path cache_dir;
  std::string json_file;
  int rounds = 7;
  double seconds_per_round = 1.0;
  bool quick = false;
  int lanes = 1;
  InputOptions input;
};

// Measures the input pipeline and prints the result. Throws UsageError, FileError.
void run_input(InputBenchOptions options);

}  // namespace syncopate::bench
