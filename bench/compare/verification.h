// Checks that a comparison can be reproduced: `syncopate-bench report --verify`.
#pragma once

#include <filesystem>
#include <iosfwd>
#include <string>

#include "models/base/environment.h"
#include "worker/train/stop_signal.h"

namespace syncopate::bench {

struct VerifyOptions {
  std::filesystem::path dir;  // the folder of the comparison, or of a map of several clusters
  std::string data;           // where the data set is now, as for --data; "": where it was
};

// Trains one run of each variant of the comparison again, in a temporary folder, and prints a line
// for each variant and a sentence about all. Before that, compares the data set, the network and
// the flags of all runs with the recorded ones. Changes no file of the comparison. Throws
// std::runtime_error, which says what differs, and FileError.
void verify(const VerifyOptions& how, const Environment& environment, StopSignal& signals,
            std::ostream& out);

}  // namespace syncopate::bench
