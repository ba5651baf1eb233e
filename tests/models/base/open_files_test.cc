#include "models/base/open_files.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cerrno>
#include <string>

#include "models/base/errors.h"
#include "tests/support/contains.h"
#include "tests/support/file_limit.h"
#include "tests/support/thrown.h"

namespace syncopate {
namespace {

class OpenFiles : public testing::Test {
 protected:
  const FileLimit limit_{64};
};

TEST_F(OpenFiles, MayBeAsManyAsTheHardLimitAllows) {
  EXPECT_EQ(open_file_limit(), 64);
  raise_open_file_limit();
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  EXPECT_EQ(limit.rlim_cur, std::min(limit.rlim_max, rlim_t{1} << 20));
}

TEST_F(OpenFiles, BeyondTheLimitAreRefusedWithLimitNeedAndCommand) {
  EXPECT_NO_THROW(require_open_files(64, "server 0"));
  const std::string line = message_of<UsageError>([&] { require_open_files(195, "server 0"); });
  EXPECT_EQ(line.find("server 0 needs 195 open files, and the limit is 64: "), 0U) << line;
  EXPECT_TRUE(contains(line, "ulimit -n 195"));
}

TEST_F(OpenFiles, AreNamedWithTheLimitInEveryErrorOfTheSystem) {
  EXPECT_EQ(describe_errno("create", "a pipe", EMFILE),
            "create a pipe: Too many open files; the limit is 64: raise it with ulimit -n 1024");
  EXPECT_EQ(open_files_advice(ENOSPC), "");
}

}  // namespace
}  // namespace syncopate
