// Tests which packages deploy/quickstart.sh would install, and how, before it builds. Stand-ins for
// the package tools record their arguments, so nothing is installed and no network is needed.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/contains.h"
#include "tests/support/temporary_folder.h"

namespace syncopate::architecture {
namespace {

namespace fs = std::filesystem;

struct Outcome {
  int exit_code = -1;
  std::string output;    // stdout and stderr of the script
  std::string commands;  // the arguments of the package tools' stand-ins, one call a line
};

std::string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// The fixture provides a PATH for quickstart.sh: the few tools that the script needs, and stand-ins
// for the package tools.
class Quickstart : public testing::Test {
 protected:
  void SetUp() override {
    fs::create_directory(folder_ / "bin");
    for (const char* tool : {"bash", "awk", "dirname", "cat"}) {
      fs::create_symlink(fs::path("/usr/bin") / tool, folder_ / "bin" / tool);
    }
    stand_in("id", "echo 0");
    stand_in("env", "echo \"$*\" >> \"$STAND_IN_LOG\"");
    stand_in("apt-get", "true");
    stand_in("dpkg", "exit 0");
    stand_in("dpkg-query", "exit 1");  // reports that no package is installed
  }

  void stand_in(const std::string& tool, const std::string& script) const {
    const fs::path path = folder_ / "bin" / tool;
    std::ofstream(path) << "#!/bin/bash\n" << script << "\n";
    fs::permissions(path, fs::perms::owner_all);
  }

  Outcome run(const std::string& word) const {
    const std::string command = "PATH='" + (folder_ / "bin").string() + "' STAND_IN_LOG='" +
                                (folder_ / "log").string() +
                                "' /bin/bash '" SYNCOPATE_SOURCE_DIR "/deploy/quickstart.sh' " +
                                word + " > '" + (folder_ / "output").string() + "' 2>&1";
    const int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_file(folder_ / "output"),
            read_file(folder_ / "log")};
  }

  const TemporaryFolder folder_;
};

TEST_F(Quickstart, RefusesAnUnknownWordWithOneLine) {
  const Outcome outcome = run("tset");
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_EQ(outcome.output,
            "quickstart: unknown word 'tset'; expected test, packages, --help or nothing\n");
  EXPECT_EQ(outcome.commands, "");
}

TEST_F(Quickstart, NamesWhatItWillInstallAndInstallsIt) {
  const Outcome outcome = run("packages");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
  EXPECT_TRUE(contains(outcome.output, "about to install", "libdnnl-dev"));
  // Without these two the program would lack convert, --tensorboard and the TFRecord data sets.
  EXPECT_TRUE(contains(outcome.output, " libprotobuf-dev ", " protobuf-compiler "));
  EXPECT_EQ(outcome.commands.find("DEBIAN_FRONTEND=noninteractive apt-get update"), 0U)
      << outcome.commands;
  EXPECT_TRUE(
      contains(outcome.commands, "apt-get install --yes --no-install-recommends g++ cmake"));
}

TEST_F(Quickstart, HasNothingToDoTheSecondTime) {
  stand_in("dpkg-query", "echo installed 99");
  const Outcome outcome = run("packages");
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.output, "quickstart: all packages are installed\n");
  EXPECT_EQ(outcome.commands, "");
}

TEST_F(Quickstart, PrintsTimeAndDiskBeforeItBegins) {
  stand_in("dpkg-query", "echo installed 99");
  stand_in("nproc", "echo 2");
  stand_in("cmake", "exit 1");  // ends quickstart.sh before it builds
  const Outcome outcome = run("");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_EQ(outcome.output.find("quickstart: packages, build and comparison take 4 to 9 minutes "
                                "on two cores, and 300 MB of disk"),
            0U)
      << outcome.output;
}

TEST_F(Quickstart, PrintsTheTimeThatItTookAtTheEnd) {
  stand_in("dpkg-query", "echo installed 99");
  stand_in("nproc", "echo 2");
  stand_in("cmake", "true");
  stand_in("ctest", "true");
  const Outcome outcome = run("test");
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_TRUE(outcome.output.ends_with(" s\n")) << outcome.output;
  EXPECT_TRUE(contains(outcome.output, "\nquickstart: took 0 min "));
}

TEST_F(Quickstart, InstallsAgainWhatIsTooOld) {
  stand_in("dpkg-query", "echo installed 1:0.9-1");
  stand_in("dpkg", "exit 1");
  EXPECT_TRUE(contains(run("packages").commands, "apt-get install"));
}

TEST_F(Quickstart, UsesSudoWhenItIsNotRoot) {
  stand_in("id", "echo 1000");
  stand_in("sudo", "echo \"sudo $*\" >> \"$STAND_IN_LOG\"");
  const Outcome outcome = run("packages");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
  EXPECT_TRUE(
      contains(outcome.commands, "sudo env DEBIAN_FRONTEND=noninteractive apt-get install"));
}

TEST_F(Quickstart, PrintsTheCommandWithoutPermissionToInstall) {
  stand_in("id", "echo 1000");
  const Outcome outcome = run("packages");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_TRUE(contains(outcome.output, "as root, run: apt-get update && apt-get install"));
  EXPECT_EQ(outcome.commands, "");
}

TEST_F(Quickstart, NamesThePackagesWhereThereIsNoApt) {
  fs::remove(folder_ / "bin" / "apt-get");
  const Outcome outcome = run("packages");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_TRUE(
      contains(outcome.output, "c++ is missing and this is not a Debian system", "libdnnl-dev"));
}

TEST(Dependencies, StateVersionAgePurposeAndReason) {
  std::ifstream in(SYNCOPATE_SOURCE_DIR "/deploy/dependencies.txt");
  const std::vector<std::string> kinds = {"build", "test", "later", "dev", "peer"};
  int packages = 0;
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line.starts_with('#')) continue;
    std::istringstream words(line);
    const std::vector<std::string> fields{std::istream_iterator<std::string>(words), {}};
    ASSERT_GE(fields.size(), 5U) << line;
    EXPECT_EQ(std::count(kinds.begin(), kinds.end(), fields[0]), 1) << line;
    EXPECT_TRUE(fields[2] == "any" ||
                fields[2].find_first_not_of("0123456789.") == std::string::npos)
        << line;
    ++packages;
  }
  EXPECT_GT(packages, 15);
}

}  // namespace
}  // namespace syncopate::architecture
