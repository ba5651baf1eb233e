// Tests the allocations of a batch source: counts every operator new of this test program.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "tests/worker/input/counting_dataset.h"
#include "worker/input/batches/batch_source.h"

namespace {
std::atomic<std::int64_t> allocations{0};
}  // namespace

// The replacements of new and delete are left out with sanitizers, which replace them as well; the
// compiler would then find that new and free do not belong together.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
void* operator new(std::size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* const memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
#endif

namespace syncopate {
namespace {

TEST(BatchSource, AllocatesNothingWhileItRuns) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "allocations are not counted under a sanitizer; the optimised build counts them";
#endif
  const CountingDataset dataset(10000, {8, 8, 3});
  const auto source =
      make_batch_source(dataset, {.batch_size = 8, .augment = Augment::kCropFlip, .threads = 2});
  for (int i = 0; i < 20; ++i) source->next();
  const std::int64_t before = allocations.load();
  for (int i = 0; i < 500; ++i) source->next();
  EXPECT_EQ(allocations.load(), before);
}

}  // namespace
}  // namespace syncopate
