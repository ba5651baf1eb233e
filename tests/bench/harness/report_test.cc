#include "bench/harness/report.h"

#include <gtest/gtest.h>

#include <fstream>

#include "models/base/errors.h"
#include "tests/support/temporary_folder.h"

namespace syncopate::bench {
namespace {

TEST(NumberText, ShowsThreeDigits) {
  EXPECT_EQ(number_text(1.2345), "1.23");
  EXPECT_EQ(number_text(12.345), "12.3");
  EXPECT_EQ(number_text(1234.5), "1234");
  EXPECT_EQ(number_text(0.01234), "0.012");
}

TEST(NumberText, GivesUpADecimalWhereRoundingAddsADigit) {
  EXPECT_EQ(number_text(9.999), "10.0");
  EXPECT_EQ(number_text(99.99), "100");
}

TEST(SpreadText, ScalesSecondsToMilliseconds) {
  EXPECT_EQ(spread_text({.median = 0.00825, .min = 0.0081, .max = 0.00861}, 1e3),
            "8.25 [8.10-8.61]");
}

TEST(Table, AlignsItsColumns) {
  EXPECT_EQ(format_table({{"model", "ms"}, {"mlp", "1.00"}}), "model  ms\nmlp    1.00\n");
}

TEST(ShellWord, IsQuotedWhereAShellWouldInterpretIt) {
  EXPECT_EQ(shell_word("synthetic:1x8x8:4:256"), "synthetic:1x8x8:4:256");
  EXPECT_EQ(shell_word("--kill=worker=1,at=1s"), "--kill=worker=1,at=1s");
  EXPECT_EQ(shell_word("/tmp/a folder"), "'/tmp/a folder'");
  EXPECT_EQ(shell_word("it's $HOME"), "'it'\\''s $HOME'");
  EXPECT_EQ(shell_word("~"), "'~'");
  EXPECT_EQ(shell_word(""), "''");
}

TEST(ReportFile, ThatCannotBeWrittenIsAnErrorAndLeavesNoFile) {
  const TemporaryFolder outer;
  const auto folder = outer / "absent";
  EXPECT_THROW(require_writable(folder / "report.json"), UsageError);
  EXPECT_THROW(write_report(folder / "report.json", "{}"), FileError);
  EXPECT_FALSE(std::filesystem::exists(folder));
}

TEST(ReportFile, HoldsTheTextAndNoTemporaryFileStays) {
  const TemporaryFolder folder;
  require_writable(folder / "report.json");
  write_report(folder / "report.json", "{}");
  std::string line;
  std::getline(std::ifstream(folder / "report.json"), line);
  EXPECT_EQ(line, "{}");
  EXPECT_EQ(folder.num_files(), 1U);
}

}  // namespace
}  // namespace syncopate::bench
