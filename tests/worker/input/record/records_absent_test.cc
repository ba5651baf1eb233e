// A build without protobuf.
#include <gtest/gtest.h>

#include "models/base/errors.h"
#include "tests/support/thrown.h"
#include "worker/input/dataset.h"
#include "worker/input/record/example.h"

namespace syncopate {
namespace {

TEST(ABuildWithoutProtobuf, SaysWhatToInstall) {
  EXPECT_EQ(message_of<UnavailableError>([] { open_tfds("x", {}); }),
            "--data tfds:DIR needs protobuf, and this build has none; install libprotobuf-dev and "
            "protobuf-compiler, and build again");
  EXPECT_NE(message_of<UnavailableError>([] { open_tfrecord("x", {}); }), "");
  EXPECT_NE(message_of<UnavailableError>([] { open_otbtf("x", {}); }), "");
  EXPECT_TRUE(protobuf_version().starts_with("none: tfds:")) << protobuf_version();
  EXPECT_NE(message_of<UnavailableError>([] { serialize_example({}); }), "");
}

}  // namespace
}  // namespace syncopate
