#include "models/base/file_lock.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "models/base/errors.h"
#include "models/base/replacing_file.h"
#include "tests/support/contains.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/thrown.h"

namespace syncopate {
namespace {

class FileClaim : public testing::Test {
 protected:
  ~FileClaim() override { std::filesystem::remove(path_); }

  FileDescriptor open_file() const {
    return FileDescriptor(::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  }

  const TemporaryFolder folder_;
  const std::filesystem::path path_ = folder_ / "claim";
};

TEST_F(FileClaim, RefusesASecondRunAndNamesFileAndProcess) {
  const FileDescriptor first = open_file();
  claim_file(first, "--metrics", path_);
  const FileDescriptor second = open_file();
  const std::string error = message_of<UsageError>([&] { claim_file(second, "--metrics", path_); });
  const std::string expected = "--metrics " + path_.string() +
                               ": another run writes this file (process " +
                               std::to_string(getpid()) + "); wait for its end, or give another";
  EXPECT_TRUE(contains(error, expected));
}

TEST_F(FileClaim, LastsAsLongAsATaskThatJoinedIt) {
  FileDescriptor first = open_file();
  claim_file(first, "--metrics", path_);
  FileDescriptor second = open_file();
  join_claim(second);
  first.reset();
  EXPECT_THROW(claim_file(open_file(), "--metrics", path_), UsageError);
  second.reset();
  claim_file(open_file(), "--metrics", path_);
}

TEST_F(FileClaim, OfAnEmptyFileRemovesItsContents) {
  const FileDescriptor file = open_file();
  ASSERT_EQ(write(file.get(), "old", 3), 3);
  claim_empty_file(file, "--record", path_);
  EXPECT_EQ(std::filesystem::file_size(path_), 0U);
}

TEST_F(FileClaim, KeepsItsFileFromBeingReplaced) {
  require_unclaimed(path_);  // there is no file
  FileDescriptor file = open_file();
  claim_file(file, "--metrics", path_);
  EXPECT_THROW(require_unclaimed(path_), UsageError);
  EXPECT_THROW(ReplacingFile{path_}, UsageError);
  file.reset();
  require_unclaimed(path_);
}

TEST_F(FileClaim, DoesNotApplyToAPipe) {
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  const FileDescriptor first = open_file();
  const FileDescriptor second = open_file();
  claim_empty_file(first, "--metrics", path_);
  claim_empty_file(second, "--metrics", path_);
}

}  // namespace
}  // namespace syncopate
