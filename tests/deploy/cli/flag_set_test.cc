// Tests parsing of the flags of one command, the messages, and the layout of --help.
#include "deploy/cli/flag_set.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "deploy/cli/command_line.h"
#include "deploy/cli/flag.h"
#include "models/base/errors.h"
#include "tests/support/as_words.h"
#include "tests/support/contains.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/thrown.h"

namespace syncopate {
namespace {

// Returns a command that has one flag of each kind.
struct Job {
  int count = 3;
  std::optional<int> port;
  double rate = 0.5;
  double share = 0.5;
  std::string name = "default";
  std::filesystem::path folder;
  bool quiet = false;
  std::vector<int> sizes = {1, 2};
  std::vector<std::string> nodes;
  std::vector<std::string> pairs;
  std::vector<std::string> rest;
  FlagSet flags{"tool run", "Runs a job."};

  Job() {
    flags.begin_group("Numbers");
    flags.add("--count", &count, "number of things", {.least = 1, .most = 100});
    flags.add("--port", &port, "port", {.least = 1});
    flags.add("--rate", &rate, "rate", {.above = 0.0, .example = "0.1", .excludes = {"--count"}});
    flags.add("--share", &share, "share", {.least = 0.0, .most = 1.0});
    flags.add("--sizes", &sizes, "sizes", {.least = 1, .separator = ','});
    flags.begin_group("Texts");
    flags.add("--name", &name, "name", {.choices = {"default", "other"}});
    flags.add("--folder", &folder, "folder of the results", {.default_text = "none"});
    flags.add("--quiet", &quiet, "no output");
    flags.add("--nodes", &nodes, "nodes", {.value = "NODE,...", .separator = ','});
    flags.add("--pair", &pairs, "pair of things", {.value = "A=B", .repeats = true});
    flags.add("--secret", &name, "not shown", {.hidden = true});
    flags.add_config();
  }
};

std::string error_of(const Arguments& arguments) {
  Job job;
  return message_if_thrown<UsageError>([&] { job.flags.parse(arguments); });
}

TEST(FlagSet, StoresValuesOfEveryKind) {
  Job job;
  EXPECT_EQ(job.flags.parse(Arguments{"--count", "7", "--port=80", "--share", "1e-1", "--sizes",
                                      "4,5", "--name", "other", "--folder", "a b", "--quiet",
                                      "--pair", "x=1", "--pair", "y=2"}),
            std::nullopt);
  EXPECT_EQ(job.count, 7);
  EXPECT_EQ(job.port, 80);
  EXPECT_EQ(job.share, 0.1);
  EXPECT_EQ(job.sizes, (std::vector<int>{4, 5}));
  EXPECT_EQ(job.name, "other");
  EXPECT_EQ(job.folder, "a b");
  EXPECT_TRUE(job.quiet);
  EXPECT_EQ(job.pairs, (Arguments{"x=1", "y=2"}));
  EXPECT_TRUE(job.flags.has("--count"));
  EXPECT_FALSE(job.flags.has("--rate"));
}

TEST(FlagSet, TakesTheLastOfTwoValues) {
  Job job;
  job.flags.parse(as_words("--count 7 --sizes 4,5 --count 8 --sizes 6"));
  EXPECT_EQ(job.count, 8);
  EXPECT_EQ(job.sizes, (std::vector<int>{6}));
}

TEST(FlagSet, QuotesTheTypedNumberAndTheExpectedForm) {
  EXPECT_EQ(error_of({"--count", "0"}), "--count 0: expected a whole number from 1 to 100");
  EXPECT_EQ(error_of({"--count", "99999999999999999999"}),
            "--count 99999999999999999999: expected a whole number from 1 to 100");
  EXPECT_EQ(error_of({"--port", "x"}), "--port x: expected a whole number, at least 1");
  EXPECT_EQ(error_of({"--rate", "nan"}), "--rate nan: expected a number above 0, such as 0.1");
  EXPECT_EQ(error_of({"--sizes", "1,,2"}), "--sizes '': expected a whole number, at least 1");
}

TEST(FlagSet, NamesTheNumberThatWasProbablyMeant) {
  EXPECT_EQ(error_of({"--count", "1e1"}),
            "--count 1e1: expected a whole number from 1 to 100; did you mean 10?");
  EXPECT_EQ(error_of({"--share", "95"}),
            "--share 95: expected a number from 0 to 1; did you mean 0.95?");
  EXPECT_EQ(error_of({"--share", "1.5"}), "--share 1.5: expected a number from 0 to 1");
  EXPECT_EQ(error_of({"--rate", "0,01"}),
            "--rate 0,01: expected a number above 0, such as 0.1; did you mean 0.01?");
}

TEST(FlagSet, RefusesAMissingValue) {
  EXPECT_EQ(error_of({"--count"}), "--count: its value is missing; expected --count N");
  EXPECT_EQ(error_of({"--folder", "--quiet"}),
            "--folder: its value is missing; --quiet stands in its place");
  EXPECT_EQ(error_of({"--folder", ""}), "--folder is empty: expected a path");
}

TEST(FlagSet, RefusesAnEmptyNameOfAList) {
  for (const char* names : {"a,", ",a", "a,,b"}) {
    EXPECT_EQ(error_of({"--nodes", names}),
              "--nodes " + std::string(names) + ": expected NODE,..., none of them empty");
  }
  EXPECT_EQ(error_of({"--nodes", ""}), "--nodes '': expected NODE,..., none of them empty");
  EXPECT_EQ(error_of({"--nodes", "a,b"}), "");
}

TEST(FlagSet, RefusesATildeThatTheShellDidNotExpand) {
  EXPECT_EQ(error_of({"--folder=~/runs"}),
            "--folder ~/runs: the shell expands ~ at the start of a word only; did you mean "
            "$HOME/runs?");
}

TEST(FlagSet, RefusesFlagsThatExcludeEachOther) {
  EXPECT_EQ(error_of({"--count", "2", "--rate", "2"}), "--count and --rate: leave one of them out");
}

TEST(FlagSet, SuggestsTheFlagThatWasMeant) {
  EXPECT_EQ(error_of({"--cuont", "2"}),
            "unknown flag --cuont; did you mean '--count'? tool run --help lists the flags");
  EXPECT_EQ(error_of({"--colour"}), "unknown flag --colour; tool run --help lists the flags");
}

TEST(FlagSet, PutsTheDashesBeforeAWordThatBelongsBehindThem) {
  Job job;
  job.flags.take_rest(job.rest, "train [FLAGS]", "train and its flags", {});
  job.flags.parse(Arguments{"--quiet", "--", "train", "--count", "x"});
  EXPECT_EQ(job.rest, (Arguments{"train", "--count", "x"}));
  EXPECT_EQ(message_of<UsageError>([&] { job.flags.parse(Arguments{"train"}); }),
            "unexpected argument train; put -- before train");
}

TEST(FlagSet, TakesAConfigFileWithAByteOrderMark) {
  const TemporaryFolder folder;
  const auto file = folder / "flags.ini";
  for (const std::string text : {"\xEF\xBB\xBF"
                                 "count = 7\n",
                                 "count = 7\n"}) {
    std::ofstream(file) << text;
    Job job;
    job.flags.parse(Arguments{"--config", file});
    EXPECT_EQ(job.count, 7);
  }
  std::ofstream(file) << "";
  EXPECT_EQ(error_of({"--config", file}), "");
  std::ofstream(file) << "\xFF\xFE"
                         "c";
  EXPECT_EQ(error_of({"--config", file}),
            "--config: expected text in UTF-8, found UTF-16; convert it: iconv -f UTF-16 -t UTF-8 "
            "FILE > NEW");
  std::filesystem::remove(file);
}

TEST(FlagSet, PutsFlagsThatBelongBehindTheDashesThere) {
  const auto refusal_of = [](const Arguments& arguments) -> std::string {
    Job job;
    job.flags.take_rest(job.rest, "train [FLAGS]", "train and its flags",
                        {{"--size"}, {"--exif", true}, {"--count"}, {"--rank", false, "not here"}},
                        "train");
    return message_if_thrown<UsageError>([&] { job.flags.parse(arguments); });
  };
  EXPECT_EQ(refusal_of({"--exif", "--size", "3 4", "--quiet", "--", "train", "--x"}),
            "unknown flag --exif; train and its flags stand behind --: tool run --quiet -- train "
            "--x --exif --size '3 4'");
  EXPECT_EQ(refusal_of({"--size=3"}),
            "unknown flag --size; train and its flags stand behind --: tool run -- train --size=3");
  EXPECT_EQ(refusal_of({"--rank", "1"}), "unknown flag --rank: not here");
  EXPECT_EQ(refusal_of({"--count", "2"}), "") << "the command has the flag itself";
}

TEST(FlagSet, RefusesLinesOfAConfigFileThatAreNoFlags) {
  const TemporaryFolder folder;
  const auto file = folder / "flags.ini";
  std::ofstream(file) << "name: other\n";
  EXPECT_EQ(error_of({"--config", file}), "--config: line 'name: other': expected NAME = VALUE");
  std::ofstream(file) << "--count = 1\n";
  EXPECT_EQ(error_of({"--config", file}),
            "--config: --count: write the name without dashes: count = VALUE");
  std::ofstream(file) << "count = 1 2\n";
  EXPECT_EQ(error_of({"--config", file}),
            "--config: count: expected one value, found 2; put quotes around a value with blanks");
  std::filesystem::remove(file);
  EXPECT_EQ(error_of({"--config", file}), "--config: " + file.string() +
                                              " cannot be read; expected a file of lines NAME = "
                                              "VALUE");
}

TEST(HelpText, ShowsGroupsValuesChoicesAndDefaults) {
  EXPECT_EQ(
      *Job().flags.parse(Arguments{"--help"}),
      "Runs a job.\n\nUsage: tool run [FLAGS]\n\n"
      "Numbers:\n"
      "  --count N                       number of things (default: 3)\n"
      "  --port N                        port\n"
      "  --rate X                        rate (default: 0.5)\n"
      "  --share X                       share (default: 0.5)\n"
      "  --sizes N,...                   sizes (default: 1,2)\n"
      "\nTexts:\n"
      "  --name NAME                     name: default | other (default: default)\n"
      "  --folder PATH                   folder of the results (default: none)\n"
      "  --quiet                         no output\n"
      "  --nodes NODE,...                nodes\n"
      "  --pair A=B                      pair of things (default: none); may be repeated\n"
      "  --config FILE                   file with flags; each line is NAME = VALUE, where NAME is "
      "a flag\n"
      "                                  without its leading dashes (default: none)\n");
}

TEST(HelpText, WrapsAtBlanks) {
  const std::string text = wrapped(std::string(90, 'a') + " bbbbbbbbbbbb\ncc", 0, 2);
  EXPECT_EQ(text, std::string(90, 'a') + "\n  bbbbbbbbbbbb\n  cc");
}

std::string help_of_command(const std::string& command) {
  const Arguments arguments = {command, "--help"};
  return std::get<TextOptions>(parse_command_line(arguments, Environment())).text;
}

TEST(HelpText, OfEveryCommandHasLinesOfAtMost100Columns) {
  for (const char* command :
       {"train", "evaluate", "launch", "serve", "sbatch", "cluster", "doctor", "info"}) {
    std::istringstream lines(help_of_command(command));
    for (std::string line; std::getline(lines, line);) {
      EXPECT_LE(line.size(), kHelpColumns) << command << ": " << line;
    }
  }
}

TEST(HelpText, OfTrainHasTheGroupsInOrder) {
  const std::string help = help_of_command("train");
  std::size_t position = 0;
  for (const char* group :
       {"Model and data:", "Strategy and devices:", "Optimizer and schedule:", "Cluster:",
        "Servers and staleness:", "Checkpoints and output:", "Fault injection:"}) {
    const std::size_t found = help.find("\n" + std::string(group) + "\n", position);
    ASSERT_NE(found, std::string::npos) << group;
    position = found;
  }
  for (const char* flag : {"--service-time", "--slow", "--pause", "--link-delay", "--link-rate"}) {
    EXPECT_GT(help.find("\n  " + std::string(flag)), position) << flag;
  }
}

// In the help text each flag must show a default or be marked as required.
TEST(HelpText, OfTrainShowsADefaultForEveryValue) {
  const std::string help = help_of_command("train");
  std::istringstream lines(help.substr(help.find("\n  --")));
  std::string entry;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("  --")) {
      const bool has_value = entry.find(' ', 2) < 33 && entry.size() > entry.find(' ', 2) + 1 &&
                             entry[entry.find(' ', 2) + 1] != ' ';
      if (has_value) {
        EXPECT_TRUE(contains(entry, "(default: "));
      }
      entry.clear();
    }
    entry += line.substr(line.starts_with("   ") ? 33 : 0);
    if (line.starts_with("Exit codes")) break;
  }
}

}  // namespace
}  // namespace syncopate
