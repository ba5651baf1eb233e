// mnist:DIR. Any dataset in MNIST's four files will do (Fashion-MNIST, KMNIST).
#include <filesystem>
#include <string>
#include <utility>

#include "models/base/errors.h"
#include "worker/input/byte_stream.h"
#include "worker/input/dataset_openers.h"
#include "worker/input/idx.h"
#include "worker/input/memory_dataset.h"

namespace syncopate {
namespace {

constexpr int kClasses = 10;

// `stem` and `rank` as in "train-images" and "idx3-ubyte"; some archives join them by a dot.
std::filesystem::path find_file(const std::filesystem::path& dir, const std::string& stem,
                                const std::string& rank) {
  for (const char* joint : {"-", "."}) {
    if (const auto path = find_packed(dir, stem + joint + rank)) return *path;
  }
  throw UsageError("mnist: " + dir.string() + " has no " + stem + "-" + rank +
                   " (nor with .gz); expected the four IDX files of MNIST there");
}

std::unique_ptr<Dataset> open_split(const std::filesystem::path& dir, const std::string& split) {
  const std::filesystem::path images_path = find_file(dir, split + "-images", "idx3-ubyte");
  const std::filesystem::path labels_path = find_file(dir, split + "-labels", "idx1-ubyte");
  IdxImages images = read_idx_images(images_path);
  std::vector<std::uint8_t> labels = read_idx_labels(labels_path, kClasses);
  if (static_cast<std::int64_t>(labels.size()) != images.count) {
    throw FileError(images_path.string() + " holds " + std::to_string(images.count) +
                    " images but " + labels_path.string() + " holds " +
                    std::to_string(labels.size()) +
                    " labels; expected as many; fetch both files again");
  }
  return make_memory_dataset(make_sample_block(std::move(images.pixels), std::move(labels)),
                             {images.rows, images.columns, 1}, kClasses);
}

}  // namespace

DataSplits open_mnist(std::string_view folder, const DataOptions& /*options*/) {
  check_is_folder("mnist", folder);
  DataSplits splits{.name = "mnist",
                    .train = open_split(folder, "train"),
                    .test = open_split(folder, "t10k"),
                    .mean = {0.1307F},
                    .stddev = {0.3081F},
                    .suits_crop_flip = false};
  if (splits.train->sample_shape() != splits.test->sample_shape()) {
    throw FileError("mnist: " + std::string(folder) + " has training images of " +
                    to_string(splits.train->sample_shape()) + " and test images of " +
                    to_string(splits.test->sample_shape()) + "; expected the same shape");
  }
  return splits;
}

}  // namespace syncopate
