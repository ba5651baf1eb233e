#include "models/backend/cuda/device_speed.h"

#include <algorithm>
#include <vector>

#include "models/backend/cuda/captured_work.h"
#include "models/backend/cuda/device.h"
#include "models/backend/cuda/operations.h"
#include "models/base/random.h"

namespace syncopate::cuda {
namespace {

StreamEvent make_timed_event() {
  cudaEvent_t made = nullptr;
  check_cuda(cudaEventCreate(&made));
  return StreamEvent(made);
}

constexpr int kRepeats = 10;
constexpr std::size_t kCopyBytes = std::size_t{1} << 30;  // per copy; far larger than a GPU's cache
constexpr std::int64_t kSide = 8192;

double seconds_of(cudaStream_t stream, const std::function<void()>& work) {
  return std::chrono::duration<double>(time_on_device(stream, kRepeats, work)).count();
}

// Returns random numbers of either sign between one half and one. Zeros would cost less power and
// so be multiplied faster.
std::vector<std::uint32_t> random_numbers(Precision precision) {
  // A matrix is filled by repeating these words. Their number is odd, so that its rows differ.
  std::vector<std::uint32_t> words((std::size_t{1} << 20) - 3);
  const RandomStream random(1, 0);
  std::uint64_t index = 0;
  for (std::uint32_t& word : words) {
    const auto bits = static_cast<std::uint32_t>(random.bits(index++));
    switch (precision) {
      case Precision::kF32:
        word = (bits & 0x807FFFFFU) | 0x3F000000U;
        break;
      case Precision::kBf16:
        word = (bits & 0x807F807FU) | 0x3F003F00U;
        break;
      case Precision::kF16:
        word = (bits & 0x83FF83FFU) | 0x38003800U;
        break;
    }
  }
  return words;
}

void fill(Buffer& buffer, std::span<const std::uint32_t> words) {
  const auto bytes = std::as_bytes(words);
  for (std::size_t at = 0; at < buffer.size_bytes(); at += bytes.size()) {
    copy_to_device(buffer.data() + at,
                   bytes.first(std::min(bytes.size(), buffer.size_bytes() - at)));
  }
}

double copy_bytes_per_second(int device) {
  const Stream stream = make_stream();
  const auto from = make_device_buffer(kCopyBytes, device);
  const auto into = make_device_buffer(kCopyBytes, device);
  const double seconds = seconds_of(stream.get(), [&] {
    check_cuda(cudaMemcpyAsync(into->data(), from->data(), kCopyBytes, cudaMemcpyDeviceToDevice,
                               stream.get()));
  });
  return 2.0 * static_cast<double>(kCopyBytes) / seconds;
}

double product_flops_per_second(int device, Precision precision) {
  const Stream stream = make_stream();
  const auto operations = make_nvidia_operations(stream.get());
  const auto product = operations->product(
      {.m = kSide, .n = kSide, .k = kSide, .type = precision, .result_type = precision}, {});
  const std::size_t bytes = static_cast<std::size_t>(kSide * kSide) *
                            (precision == Precision::kF32 ? sizeof(float) : sizeof(std::uint16_t));
  const auto a = make_device_buffer(bytes, device);
  const auto b = make_device_buffer(bytes, device);
  const auto c = make_device_buffer(bytes, device);
  const auto workspace = make_device_buffer(product->workspace_bytes(), device);
  const std::vector<std::uint32_t> words = random_numbers(precision);
  fill(*a, words);
  fill(*b, std::span(words).subspan(1));
  const double seconds = seconds_of(stream.get(), [&] {
    product->run({.a = a->data(), .b = b->data(), .c = c->data(), .workspace = workspace->data()});
  });
  return 2.0 * static_cast<double>(kSide) * kSide * kSide / seconds;
}

}  // namespace

std::chrono::nanoseconds time_on_device(cudaStream_t stream, int repeats,
                                        const std::function<void()>& work) {
  const StreamEvent begun = make_timed_event();
  const StreamEvent ended = make_timed_event();
  CapturedWork all(/*uncaptured_runs=*/1);
  for (int run = 0; run < 2; ++run) {
    check_cuda(cudaEventRecord(begun.get(), stream));
    all.run(stream, [&] {
      for (int i = 0; i < repeats; ++i) work();
    });
    check_cuda(cudaEventRecord(ended.get(), stream));
  }
  check_cuda(cudaEventSynchronize(ended.get()));
  float milliseconds = 0.0F;  // the time of all repeats together
  check_cuda(cudaEventElapsedTime(&milliseconds, begun.get(), ended.get()));
  const std::chrono::duration<double, std::milli> one(double{milliseconds} / repeats);
  return std::chrono::duration_cast<std::chrono::nanoseconds>(one);
}

DeviceCeilings measure_ceilings(int device, Precision precision) {
  use_device(device);
  return {.copy_bytes_per_second = copy_bytes_per_second(device),
          .product_flops_per_second = product_flops_per_second(device, precision)};
}

}  // namespace syncopate::cuda
