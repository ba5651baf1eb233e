// images:DIR: pictures in a folder per class, decoded when they are read.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "models/base/errors.h"
#include "models/base/file_descriptor.h"
#include "models/base/random.h"
#include "worker/input/dataset.h"
#include "worker/input/image/image_header.h"
#include "worker/input/pictures/image_folder.h"
#include "worker/input/pictures/picture_dataset.h"

namespace syncopate {
namespace {

class ImageDataset final : public PictureDataset {
 public:
  ImageDataset(ImageFolder folder, const ImageOptions& options, PictureCache cache)
      : PictureDataset(options, static_cast<int>(folder.classes.size()), std::move(cache)),
        folder_(std::move(folder)) {}

  std::int64_t size() const noexcept override {
    return static_cast<std::int64_t>(folder_.files.size());
  }
  std::int32_t label(std::int64_t index) const override { return file_at(index).label; }

 private:
  // Changes when the file or the way of decoding changes. The stamp has the folder's name, because
  // it names the split.
  std::uint64_t stamp(std::int64_t index) const override {
    constexpr int kDecoderVersion = 1;
    const ImageFile& file = file_at(index);
    return hash_name(fmt::format("{} {} {} {} {}", kDecoderVersion,
                                 folder_.root.filename().string(), file.name, file.size_bytes,
                                 file.modified));
  }

  const ImageFile& file_at(std::int64_t index) const {
    check(index >= 0 && index < size(), "a sample outside the data set");
    return folder_.files[static_cast<std::size_t>(index)];
  }

  // Throws FileError if the bytes are not those that the folder had when it was opened.
  StoredPicture load(std::int64_t index) const override {
    const ImageFile& entry = file_at(index);
    const std::string path = folder_.root / entry.name;
    std::string name = printable(path);
    const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file) throw FileError(describe_errno("open", name, errno));
    struct stat status = {};
    if (::fstat(file.get(), &status) != 0) throw FileError(describe_errno("stat", name, errno));
    const std::int64_t modified =
        status.st_mtim.tv_sec * std::int64_t{1'000'000'000} + status.st_mtim.tv_nsec;
    if (entry.size_bytes > kMaxImageBytes) {
      throw FileError(fmt::format("{}: {} bytes; expected a picture of at most {} MB", name,
                                  entry.size_bytes, kMaxImageBytes >> 20));
    }
    auto bytes =
        std::make_shared<std::vector<std::byte>>(static_cast<std::size_t>(entry.size_bytes));
    const bool is_whole = read_all_at(file, 0, *bytes) == bytes->size();
    if (!is_whole && errno != 0) throw FileError(describe_errno("read", name, errno));
    if (!is_whole || status.st_size != entry.size_bytes || modified != entry.modified) {
      throw FileError(
          fmt::format("{}: the file changed while it was in use; start again with "
                      "files that do not change",
                      name));
    }
    return {.name = std::move(name), .bytes = *bytes, .memory = bytes};
  }

  ImageFolder folder_;
};

}  // namespace

DataSplits open_images(std::string_view folder, const DataOptions& options) {
  ImageFolders folders = find_images(std::filesystem::path(folder));
  const ImageOptions image = options.image.with_size();
  std::error_code ignored;
  const auto cache = open_picture_cache(
      "images", std::filesystem::canonical(std::filesystem::path(folder), ignored).string(), image);
  std::int64_t num_slots = 0;
  const auto open = [&](ImageFolder split) -> std::unique_ptr<Dataset> {
    const std::int64_t first_slot = num_slots;
    num_slots += static_cast<std::int64_t>(split.files.size());
    return std::make_unique<ImageDataset>(std::move(split), image, PictureCache{cache, first_slot});
  };
  DataSplits splits{.name = "images", .class_names = folders.train.classes};
  // Training samples come first: they are read in every epoch.
  splits.train = open(std::move(folders.train));
  if (folders.validation) splits.validation = open(*std::move(folders.validation));
  splits.test = open(std::move(folders.test));
  describe_pictures(splits);
  return splits;
}

}  // namespace syncopate
