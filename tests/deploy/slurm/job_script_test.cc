// Tests how Slurm job scripts are filled in, and the scripts that are embedded in the program.
#include "deploy/slurm/job_script.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/contains.h"

namespace syncopate {
namespace {

constexpr std::string_view kTwoComponents =
    "#!/bin/bash\n"
    "##SBATCH --partition=PARTITION\n"
    "#SBATCH --nodes=1\n"
    "#SBATCH hetjob\n"
    "#SBATCH --nodes=2\n"
    "PROGRAM=syncopate\n"
    "PROGRAM_FLAGS=()\n";

TEST(JobScript, StaysAsItIsUntilSomethingIsFilledIn) {
  EXPECT_EQ(JobScript(kTwoComponents).text(), kTwoComponents);
}

TEST(JobScript, HasComponentsOfAHeterogeneousJob) {
  EXPECT_EQ(JobScript(kTwoComponents).components(), 2);
  EXPECT_EQ(JobScript("#!/bin/bash\n").components(), 1);
}

TEST(JobScript, FillsInAnOptionOfOneComponentOnly) {
  JobScript script(kTwoComponents);
  EXPECT_TRUE(script.set_option(1, "nodes", "8"));
  EXPECT_TRUE(contains(script.text(), "#SBATCH --nodes=1\n#SBATCH hetjob\n#SBATCH --nodes=8\n"));
}

TEST(JobScript, MakesALineCountThatTwoHashesLeaveOut) {
  JobScript script(kTwoComponents);
  EXPECT_TRUE(script.set_option(0, "partition", "gpu"));
  EXPECT_TRUE(contains(script.text(), "\n#SBATCH --partition=gpu\n"));
}

TEST(JobScript, ReportsThatThereIsNothingToFillIn) {
  JobScript script(kTwoComponents);
  EXPECT_FALSE(script.set_option(1, "partition", "gpu"));
  EXPECT_FALSE(script.set_option(0, "node", "2"));
  EXPECT_FALSE(script.set_variable("PROG", "x"));
  EXPECT_EQ(script.text(), kTwoComponents);
}

TEST(JobScript, FillsInAVariable) {
  JobScript script(kTwoComponents);
  EXPECT_TRUE(script.set_variable("PROGRAM", "/opt/syncopate"));
  EXPECT_TRUE(contains(script.text(), "\nPROGRAM=/opt/syncopate\nPROGRAM_FLAGS=()\n"));
}

TEST(ShellWord, IsQuotedWhereAShellWouldExpandIt) {
  EXPECT_EQ(shell_word("mnist:/data/a-b_c.gz"), "mnist:/data/a-b_c.gz");
  EXPECT_EQ(shell_word(""), "''");
  EXPECT_EQ(shell_word("a b"), "'a b'");
  EXPECT_EQ(shell_word("$HOME;it's"), "'$HOME;it'\\''s'");
}

TEST(ShellArray, HasEveryWord) {
  EXPECT_EQ(shell_array(std::vector<std::string>{"--steps", "5", "a b"}), "(--steps 5 'a b')");
}

TEST(JobScripts, AreInTheProgramFromTheFirstLineToTheLast) {
  for (const JobScriptRow& row : job_scripts()) {
    EXPECT_TRUE(row.text.starts_with("#!/bin/bash\n")) << row.name;
    EXPECT_TRUE(row.text.ends_with('\n')) << row.name;
  }
  EXPECT_EQ(job_scripts().size(), 5U);
}

// A job script has five places that a user must check before the first job. They precede the first
// command, since sbatch reads no #SBATCH line behind a command.
TEST(JobScripts, MarkTheFivePlacesToEdit) {
  for (const JobScriptRow& row : job_scripts()) {
    for (int place = 1; place <= 5; ++place) {
      EXPECT_TRUE(contains(row.text, "# EDIT " + std::to_string(place) + " of 5: ")) << row.name;
    }
    EXPECT_LT(row.text.rfind("\n#SBATCH --"), row.text.find("\nset -euo pipefail\n")) << row.name;
  }
}

}  // namespace
}  // namespace syncopate
