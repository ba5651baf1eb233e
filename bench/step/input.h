// What `syncopate-bench input` does, apart from its flags (input_command.cc).
#pragma once

#include <filesystem>
#include <string>

#include "worker/input/batch_source.h"

namespace syncopate::bench {

struct InputBenchOptions {
  std::string data = "digits";
  std::string model = "mnist-cnn";  // what eats the samples
  std::string augment = "none";
  std::filesystem::path cache_dir;
  std::string json_file;
  int rounds = 7;
  double seconds_per_round = 1.0;
  bool quick = false;
  int lanes = 1;
  InputOptions input;
};

// Throws UsageError, FileError.
void run_input(InputBenchOptions options);

}  // namespace syncopate::bench
