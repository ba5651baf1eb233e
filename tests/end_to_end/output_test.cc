// Tests of programs whose output has no reader or no descriptor.
#include <gtest/gtest.h>

#include <csignal>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/end_to_end/support/full_pipe.h"
#include "tests/end_to_end/support/metrics_lines.h"
#include "tests/end_to_end/support/run_program.h"
#include "tests/support/as_words.h"
#include "tests/support/contains.h"
#include "tests/support/temporary_folder.h"

namespace syncopate::test {
namespace {

// Flags of a training run whose metrics are in the file m.jsonl.
Arguments output_flags(const TemporaryFolder& scratch, const Arguments& more) {
  return as_words("--model mlp --data synthetic:1x8x8:4:640 --threads 1 --log-every 1 --metrics",
                  scratch / "m.jsonl", "--no-progress") +
         more;
}

Arguments output_run(const TemporaryFolder& scratch, const Arguments& more) {
  return syncopate_command(Arguments{"train"} + output_flags(scratch, more));
}

// Returns the command with some of its standard descriptors closed.
Arguments without_descriptors(const std::string& closed, const Arguments& command) {
  return Arguments{"/bin/sh", "-c", "exec \"$@\" " + closed, "sh"} + command;
}

class ClosedDescriptors : public testing::TestWithParam<std::string> {};

TEST_P(ClosedDescriptors, LeaveTheFilesOfARunAlone) {
  const TemporaryFolder scratch;
  const bool has_output = GetParam().find(">&- ") == std::string::npos;
  const ProgramResult result = run_program(without_descriptors(
      GetParam(), output_run(scratch, as_words("--steps 6 --eval-every-steps 2 --checkpoint-dir",
                                               scratch / "ck"))));
  EXPECT_EQ(result.exit_code, has_output ? 0 : 1) << "a result that is not printed is a failure";
  EXPECT_EQ(metrics_lines(scratch / "m.jsonl", "step").size(), 6U) << "every line is JSON";
  EXPECT_EQ(read_text(scratch / "ck/.lock").rfind("process ", 0), 0U)
      << read_text(scratch / "ck/.lock");
}

TEST_P(ClosedDescriptors, DoNotReachTheRolesOfALaunch) {
  const TemporaryFolder scratch;
  const bool has_output = GetParam().find(">&- ") == std::string::npos;
  const Arguments command =
      syncopate_command(as_words("launch --workers 2 -- train --strategy multi-worker-mirrored") +
                        output_flags(scratch, {"--steps", "6"}));
  const ProgramResult result = run_program(without_descriptors(GetParam(), command));
  EXPECT_EQ(result.exit_code, has_output ? 0 : 1);
  EXPECT_EQ(metrics_lines(scratch / "m.jsonl", "step").size(), 6U);
}

// The blank behind ">&-" tells it from "2>&-".
INSTANTIATE_TEST_SUITE_P(Each, ClosedDescriptors,
                         testing::Values("<&-", ">&- ", "2>&-", "<&- >&- ", ">&- 2>&-", "<&- 2>&-",
                                         "<&- >&- 2>&-"));

struct Job {
  std::string name;
  Arguments words;
};

class UnreadOutput : public testing::TestWithParam<Job> {};

TEST_P(UnreadOutput, NeitherHoldsTrainingUpNorKeepsItFromStopping) {
  const TemporaryFolder scratch;
  const FullPipe pipe(scratch / "pipe");
  // The lines of 1,500 evaluations are more than the launcher and the pipes of its roles hold.
  const Arguments command = syncopate_command(
      GetParam().words +
      output_flags(scratch, as_words("--epochs 100000 --eval-every-steps 1 --checkpoint-dir",
                                     scratch / "ck")));
  RunningProgram program(pipe.receiving(">$P 2>&1", command));
  ASSERT_TRUE(program.wait_until_file_has(scratch / "m.jsonl", "\"event\":\"eval\"", 1500));
  program.send(SIGTERM);
  const ProgramResult result = program.wait();
  EXPECT_EQ(result.exit_code, 75) << "ended by signal " << result.ended_by_signal;
  EXPECT_FALSE(names_in(scratch / "ck").empty());
}

INSTANTIATE_TEST_SUITE_P(
    Of, UnreadOutput,
    testing::Values(
        Job{"Train", {"train"}},
        Job{"Ring", as_words("launch --workers 2 -- train --strategy multi-worker-mirrored")},
        Job{"ParameterServer",
            as_words("launch --workers 2 --servers 1 -- train --strategy parameter-server")}),
    [](const auto& job) { return job.param.name; });

TEST(UnreadResult, WaitsForTheReader) {
  const TemporaryFolder scratch;
  FullPipe pipe(scratch / "pipe");
  RunningProgram program(pipe.receiving(">$P", output_run(scratch, {"--steps", "5"})));
  ASSERT_TRUE(program.wait_until_file_has(scratch / "m.jsonl", "\"event\":\"summary\""));
  // The program may write its first lines while the bytes that filled the pipe are read.
  std::string output = pipe.read_all();
  EXPECT_EQ(program.wait().exit_code, 0);
  output += pipe.read_all();
  EXPECT_TRUE(contains(output, "test accuracy")) << output;
}

TEST(UnreadResult, IsGivenUpOnARequestToStop) {
  const TemporaryFolder scratch;
  const FullPipe pipe(scratch / "pipe");
  RunningProgram program(pipe.receiving(">$P", output_run(scratch, {"--steps", "5"})));
  ASSERT_TRUE(program.wait_until_file_has(scratch / "m.jsonl", "\"event\":\"summary\""));
  program.send(SIGTERM);
  const ProgramResult result = program.wait();
  EXPECT_FALSE(result.timed_out);
  // The end of training before the signal, or by it: the result is lost in both cases.
  EXPECT_EQ(result.exit_code, 1) << result.err;
  EXPECT_TRUE(contains(result.err, "cannot write to standard output"));
}

}  // namespace
}  // namespace syncopate::test
