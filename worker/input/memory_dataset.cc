#include "worker/input/memory_dataset.h"

#include <cstring>
#include <utility>

#include "models/base/errors.h"

namespace syncopate {
namespace {

struct OwnedBlock {
  std::vector<std::uint8_t> pixels;
  std::vector<std::uint8_t> labels;
};

class MemoryDataset final : public Dataset {
 public:
  MemoryDataset(SampleBlock block, Shape sample_shape, int num_classes)
      : block_(std::move(block)),
        sample_shape_(std::move(sample_shape)),
        sample_bytes_(static_cast<std::size_t>(num_elements(sample_shape_))),
        num_classes_(num_classes) {
    check(block_.pixels.size() == block_.labels.size() * sample_bytes_,
          "a memory dataset needs one label for each sample");
  }

  std::int64_t size() const noexcept override {
    return static_cast<std::int64_t>(block_.labels.size());
  }
  const Shape& sample_shape() const noexcept override { return sample_shape_; }
  int num_classes() const noexcept override { return num_classes_; }

  std::int32_t read(std::int64_t index, std::span<std::uint8_t> pixels) const override {
    const auto i = static_cast<std::size_t>(index);
    check(index >= 0 && i < block_.labels.size() && pixels.size() == sample_bytes_,
          "a sample outside the dataset, or of another size");
    std::memcpy(pixels.data(), block_.pixels.data() + i * sample_bytes_, sample_bytes_);
    return block_.labels[i];
  }

 private:
  SampleBlock block_;
  Shape sample_shape_;
  std::size_t sample_bytes_;
  int num_classes_;
};

}  // namespace

SampleBlock make_sample_block(std::vector<std::uint8_t> pixels, std::vector<std::uint8_t> labels) {
  auto owned = std::make_shared<OwnedBlock>(OwnedBlock{std::move(pixels), std::move(labels)});
  return {owned->pixels, owned->labels, owned};
}

std::unique_ptr<Dataset> make_memory_dataset(SampleBlock block, Shape sample_shape,
                                             int num_classes) {
  return std::make_unique<MemoryDataset>(std::move(block), std::move(sample_shape), num_classes);
}

}  // namespace syncopate
