// Tests that the device computes with the batch that was given to an upload.
#include <gtest/gtest.h>

#include "tests/models/backend/cuda/batch_upload_case.h"
#include "tests/models/backend/cuda/device_under_test.h"

namespace syncopate::cuda {
namespace {

TEST(BatchUpload, ReadsABatchBeforeItsMemoryIsUsedAgain) {
  if (const auto reason = why_no_device()) GTEST_SKIP() << *reason;
  EXPECT_EQ(upload_batches(300000, kUploadedLengths), kUploadedValues);
}

TEST(BatchUpload, CopiesSmallBatches) {
  if (const auto reason = why_no_device()) GTEST_SKIP() << *reason;
  EXPECT_EQ(upload_batches(3, {3, 3, 2, 3}), (std::vector<float>{1, 1, 2, 2, 3, 3, 4, 4}));
}

}  // namespace
}  // namespace syncopate::cuda
