#include "models/base/unique_handle.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace syncopate {
namespace {

struct RecordedHandle {
  std::vector<int>* closed = nullptr;
  int number = 0;
  bool operator==(const RecordedHandle&) const = default;
};

struct RecordingTraits {
  using Type = RecordedHandle;
  static Type none() noexcept { return {}; }
  static void close(Type handle) noexcept {
    if (handle.closed != nullptr) handle.closed->push_back(handle.number);
  }
};
using Handle = UniqueHandle<RecordingTraits>;

TEST(UniqueHandle, ClosesOnceWhenItsScopeEnds) {
  std::vector<int> closed;
  { const Handle handle({&closed, 7}); }
  EXPECT_EQ(closed, std::vector<int>{7});
}

TEST(UniqueHandle, ClosesNothingWhenEmpty) {
  const Handle handle;
  EXPECT_FALSE(handle);
}

TEST(UniqueHandle, IsEmptyAfterBeingMovedFrom) {
  std::vector<int> closed;
  {
    Handle first({&closed, 1});
    const Handle second(std::move(first));
    EXPECT_FALSE(first);  // NOLINT(bugprone-use-after-move): UniqueHandle defines this state
    EXPECT_EQ(second.get().number, 1);
    EXPECT_TRUE(closed.empty());
  }
  EXPECT_EQ(closed, std::vector<int>{1});
}

TEST(UniqueHandle, ClosesItsHandleWhenItIsAssignedAnother) {
  std::vector<int> closed;
  Handle handle({&closed, 1});
  handle = Handle({&closed, 2});
  EXPECT_EQ(closed, std::vector<int>{1});
  handle.reset();
  EXPECT_EQ(closed, (std::vector<int>{1, 2}));
}

TEST(UniqueHandle, KeepsItsHandleWhenItIsMovedIntoItself) {
  std::vector<int> closed;
  Handle handle({&closed, 1});
  Handle& alias = handle;
  handle = std::move(alias);
  EXPECT_TRUE(handle);
  EXPECT_TRUE(closed.empty());
}

TEST(UniqueHandle, DoesNotCloseAReleasedHandle) {
  std::vector<int> closed;
  {
    Handle handle({&closed, 1});
    EXPECT_EQ(handle.release().number, 1);
  }
  EXPECT_TRUE(closed.empty());
}

}  // namespace
}  // namespace syncopate
