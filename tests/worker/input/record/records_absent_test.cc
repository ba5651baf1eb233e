// A build without protobuf.
#include <gtest/gtest.h>

#include "models/base/errors.h"
#include "worker/input/dataset.h"
#include "worker/input/record/example.h"

namespace syncopate {
namespace {

template <typename Action>
std::string unavailable(const Action& action) {
  try {
    action();
  } catch (const UnavailableError& error) {
    return error.what();
  }
  return "";
}

TEST(ABuildWithoutProtobuf, SaysWhatToInstall) {
  EXPECT_EQ(unavailable([] { open_tfds("x", {}); }),
            "--data tfds:DIR needs protobuf, and this build has none; install libprotobuf-dev and "
            "protobuf-compiler, and build again");
  EXPECT_NE(unavailable([] { open_tfrecord("x", {}); }), "");
  EXPECT_NE(unavailable([] { open_otbtf("x", {}); }), "");
  EXPECT_TRUE(protobuf_version().starts_with("none: tfds:")) << protobuf_version();
  EXPECT_NE(unavailable([] { serialize_example({}); }), "");
}

}  // namespace
}  // namespace syncopate
