// What tests of `syncopate sbatch` share: the options, the script and the error of a command line.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "deploy/cli/command_line.h"
#include "deploy/slurm/job_script.h"
#include "models/base/errors.h"
#include "tests/support/as_words.h"
#include "tests/support/contains.h"
#include "tests/support/thrown.h"

namespace syncopate {

inline SbatchOptions sbatch_options(const Arguments& arguments) {
  return std::get<SbatchOptions>(parse_command_line(as_words("sbatch", arguments), {}));
}

inline std::string sbatch_script(const Arguments& arguments) {
  return filled_script(sbatch_options(arguments));
}

inline std::string sbatch_error(const Arguments& arguments) {
  return message_if_thrown<Error>([&] { sbatch_options(arguments); });
}

inline void expect_line(const std::string& script, const std::string& line) {
  EXPECT_TRUE(contains(script, "\n" + line + "\n")) << line << "\nin\n" << script;
}

inline std::string first_note(const SbatchOptions& options) {
  return options.notes.empty() ? "" : options.notes.front();
}

}  // namespace syncopate
