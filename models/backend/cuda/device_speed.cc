#include "models/backend/cuda/device_speed.h"

#include <algorithm>
#include <limits>
#include <span>
#include <vector>

#include "models/backend/cuda/captured_work.h"
#include "models/backend/cuda/device.h"
#include "models/backend/cuda/kernels/cuda_kernels.h"
#include "models/backend/cuda/operations.h"
#include "models/base/random.h"

namespace syncopate::cuda {
namespace {

constexpr int kRepeats = 10;
constexpr std::size_t kCopyBytes = std::size_t{1} << 30;  // per copy; far larger than a GPU's cache
constexpr std::int64_t kSide = 8192;

double seconds_of(cudaStream_t stream, const std::function<void()>& work) {
  return std::chrono::duration<double>(time_on_device(stream, kRepeats, work)).count();
}

std::chrono::nanoseconds nanoseconds_of(double seconds) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::duration<double>(seconds));
}

// Returns random numbers of either sign between one half and one.
std::vector<std::uint32_t> random_words(Precision precision) {
  // An array is filled by repeating these words. Their number is odd, so that rows differ.
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

// As random_words(), drawn once.
const std::vector<std::uint32_t>& random_words_of(Precision precision) {
  static const std::vector<std::uint32_t> kF32 = random_words(Precision::kF32);
  static const std::vector<std::uint32_t> kBf16 = random_words(Precision::kBf16);
  static const std::vector<std::uint32_t> kF16 = random_words(Precision::kF16);
  return precision == Precision::kF32 ? kF32 : precision == Precision::kBf16 ? kBf16 : kF16;
}

double copy_bytes_per_second(int device) {
  const Stream stream = make_stream();
  const auto from = make_device_buffer(kCopyBytes, device);
  const auto into = make_device_buffer(kCopyBytes, device);
  // A kernel copies, because CUDA's own copy of device memory reaches two thirds of its speed on an
  // H200.
  const double seconds = seconds_of(stream.get(), [&] {
    convert(reinterpret_cast<const float*>(from->data()), reinterpret_cast<float*>(into->data()),
            static_cast<std::int64_t>(kCopyBytes / sizeof(float)), stream.get());
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
  fill_with_random_numbers(*a, precision);
  fill_with_random_numbers(*b, precision);
  const double seconds = seconds_of(stream.get(), [&] {
    product->run({.a = a->data(), .b = b->data(), .c = c->data(), .workspace = workspace->data()});
  });
  return 2.0 * static_cast<double>(kSide) * kSide * kSide / seconds;
}

}  // namespace

std::chrono::nanoseconds time_on_device(cudaStream_t stream, int repeats,
                                        const std::function<void()>& work,
                                        std::chrono::nanoseconds give_up_after) {
  constexpr int kTimedRounds = 3;
  std::vector<StreamEvent> marks;
  for (int i = 0; i <= kTimedRounds; ++i) marks.push_back(make_timed_event());
  const auto mark = [&](std::size_t i) { check_cuda(cudaEventRecord(marks[i].get(), stream)); };

  work();  // loads the kernels
  mark(0);
  work();
  mark(1);
  const double first = seconds_between(marks[0], marks[1]);
  if (first > std::chrono::duration<double>(give_up_after).count()) return nanoseconds_of(first);

  CapturedWork all(/*uncaptured_runs=*/0);
  const auto run = [&] {
    all.run(stream, [&] {
      for (int i = 0; i < repeats; ++i) work();
    });
  };
  run();  // captures the graph, and keeps the device busy while the host starts the first round
  mark(0);
  for (std::size_t i = 1; i < marks.size(); ++i) {
    run();
    mark(i);
  }
  double shortest = std::numeric_limits<double>::infinity();
  for (std::size_t i = 1; i < marks.size(); ++i) {
    shortest = std::min(shortest, seconds_between(marks[i - 1], marks[i]));
  }
  return nanoseconds_of(shortest / repeats);
}

void fill_with_random_numbers(Buffer& buffer, Precision precision) {
  const std::vector<std::uint32_t>& words = random_words_of(precision);
  const auto bytes = std::as_bytes(std::span(words));
  std::size_t filled = std::min(bytes.size(), buffer.size_bytes());
  copy_to_device(buffer.data(), bytes.first(filled));
  while (filled < buffer.size_bytes()) {
    const std::size_t more = std::min(filled, buffer.size_bytes() - filled);
    check_cuda(cudaMemcpy(buffer.data() + filled, buffer.data(), more, cudaMemcpyDeviceToDevice));
    filled += more;
  }
  check_cuda(cudaDeviceSynchronize());
}

DeviceCeilings measure_ceilings(int device, Precision precision) {
  use_device(device);
  return {.copy_bytes_per_second = copy_bytes_per_second(device),
          .product_flops_per_second = product_flops_per_second(device, precision)};
}

}  // namespace syncopate::cuda
