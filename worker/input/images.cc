// images:DIR: pictures in a folder per class, decoded when they are read.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "models/base/errors.h"
#include "models/base/file_descriptor.h"
#include "models/base/random.h"
#include "worker/input/bad_samples.h"
#include "worker/input/dataset.h"
#include "worker/input/image/image_decoder.h"
#include "worker/input/image_folder.h"
#include "worker/input/random_resized_crop.h"
#include "worker/input/sample_cache.h"

namespace syncopate {
namespace {

class ImageDataset final : public Dataset {
 public:
  // cache: may be null; this split has the slots from first_slot on.
  ImageDataset(ImageFolder folder, const ImageOptions& options, std::shared_ptr<SampleCache> cache,
               std::int64_t first_slot)
      : folder_(std::move(folder)),
        options_(options),
        spec_(classified_samples({options.height, options.width, 3},
                                 static_cast<int>(folder_.classes.size()))),
        bad_(options.skip_bad_records > 0 ? std::make_unique<BadSamples>(options.skip_bad_records)
                                          : nullptr),
        cache_(std::move(cache)),
        first_slot_(first_slot) {}

  std::int64_t size() const noexcept override {
    return static_cast<std::int64_t>(folder_.files.size());
  }
  const SampleSpec& spec() const noexcept override { return spec_; }

  void read(std::int64_t index, const Draw& draw, const SampleView& sample) const override {
    const std::span<std::byte> pixels = sample.inputs[0];
    const std::int32_t label = this->label(index);
    std::memcpy(sample.target.data(), &label, sizeof label);
    if (draw.kind == Augment::kRandomResizedCrop) {
      decode(index, &draw, pixels);
      return;
    }
    const std::int64_t slot = first_slot_ + index;
    const std::uint64_t key = cache_ ? cache_key(file_at(index)) : 0;
    if (!cache_ || !cache_->read(slot, key, pixels)) {
      decode(index, nullptr, pixels);
      if (cache_) cache_->write(slot, key, pixels);
    }
    apply_draw(draw, spec_.inputs[0], pixels, pixels);
  }

  std::int32_t label(std::int64_t index) const override { return file_at(index).label; }

  // The orientation counts too: with it the same bytes are other pixels.
  std::uint64_t fingerprint(std::int64_t index) const override {
    try {
      const std::vector<std::byte> file = read_file(index);
      const std::uint64_t hash =
          hash_name({reinterpret_cast<const char*>(file.data()), file.size()});
      return options_.apply_exif ? ~hash : hash;
    } catch (const FileError&) {
      if (bad_ == nullptr) throw;
      return 0;  // read() reports it, and may skip the picture
    }
  }

  BadSamples* bad_samples() const noexcept override { return bad_.get(); }

 private:
  // Changes when the file or the way of decoding changes. The folder is that of the split.
  std::uint64_t cache_key(const ImageFile& file) const {
    constexpr int kDecoderVersion = 1;
    return hash_name(fmt::format("{} {} {} {} {}", kDecoderVersion,
                                 folder_.root.filename().string(), file.name, file.size_bytes,
                                 file.modified));
  }

  // Decodes the whole picture, or the random part that `part` draws, which may be null.
  void decode(std::int64_t index, const Draw* part, std::span<std::byte> pixels) const {
    try {
      decode_file(index, part, pixels);
    } catch (const FileError& error) {
      if (bad_ != nullptr) throw;
      throw FileError(fmt::format("{}; --skip-bad-records N goes on without up to N such pictures",
                                  error.what()));
    }
  }

  void decode_file(std::int64_t index, const Draw* part, std::span<std::byte> pixels) const {
    const std::vector<std::byte> file = read_file(index);
    const std::string name = path_of(index);
    const ImageHeader header = read_image_header(file, name);
    DecodeOptions options{
        .width = options_.width, .height = options_.height, .apply_exif = options_.apply_exif};
    if (part != nullptr) {
      const bool transposed =
          options.apply_exif && Orientation::from_exif(header.exif_orientation).transposed;
      options.crop = random_resized_crop(part->bits, transposed ? header.height : header.width,
                                         transposed ? header.width : header.height);
      options.mirror = part->flip;
    }
    decode_image(file, name, header, options,
                 {reinterpret_cast<std::uint8_t*>(pixels.data()), pixels.size()});
  }

  const ImageFile& file_at(std::int64_t index) const {
    check(index >= 0 && index < size(), "a sample outside the data set");
    return folder_.files[static_cast<std::size_t>(index)];
  }

  std::string path_of(std::int64_t index) const {
    return printable((folder_.root / file_at(index).name).string());
  }

  // Returns the bytes of a file. Throws FileError if they are not those that the folder had when it
  // was opened.
  std::vector<std::byte> read_file(std::int64_t index) const {
    const ImageFile& entry = file_at(index);
    const std::string path = folder_.root / entry.name;
    const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file) throw FileError(describe_errno("open", path_of(index), errno));
    struct stat status = {};
    if (::fstat(file.get(), &status) != 0) {
      throw FileError(describe_errno("stat", path_of(index), errno));
    }
    const std::int64_t modified =
        status.st_mtim.tv_sec * std::int64_t{1'000'000'000} + status.st_mtim.tv_nsec;
    if (entry.size_bytes > kMaxImageBytes) {
      throw FileError(fmt::format("{}: {} bytes; expected a picture of at most {} MB",
                                  path_of(index), entry.size_bytes, kMaxImageBytes >> 20));
    }
    std::vector<std::byte> bytes(static_cast<std::size_t>(entry.size_bytes));
    std::size_t num_read = 0;
    while (num_read < bytes.size()) {
      const ssize_t count = ::read(file.get(), bytes.data() + num_read, bytes.size() - num_read);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) throw FileError(describe_errno("read", path_of(index), errno));
      if (count == 0) break;
      num_read += static_cast<std::size_t>(count);
    }
    if (num_read < bytes.size() || status.st_size != entry.size_bytes ||
        modified != entry.modified) {
      throw FileError(
          fmt::format("{}: the file changed while it was in use; start again with "
                      "files that do not change",
                      path_of(index)));
    }
    return bytes;
  }

  ImageFolder folder_;
  ImageOptions options_;
  SampleSpec spec_;
  std::unique_ptr<BadSamples> bad_;     // null: no picture may be damaged
  std::shared_ptr<SampleCache> cache_;  // null: every read decodes
  std::int64_t first_slot_;
};

// Opens the cache of all splits, so that they share one limit; null: there is none.
std::shared_ptr<SampleCache> open_cache(const std::filesystem::path& folder,
                                        const ImageOptions& options) {
  if (options.cache_dir.empty() || options.cache_mb == 0) return nullptr;
  std::error_code ignored;
  const std::string contents =
      fmt::format("{} {}x{} {}", std::filesystem::canonical(folder, ignored).string(),
                  options.height, options.width, options.apply_exif);
  return SampleCache::open(
      options.cache_dir / fmt::format("images-{:016x}.samples", hash_name(contents)),
      options.height * options.width * 3, options.cache_mb < 0 ? -1 : options.cache_mb * 1'000'000);
}

}  // namespace

DataSplits open_images(std::string_view folder, const DataOptions& options) {
  ImageFolders folders = find_images(std::filesystem::path(folder));
  ImageOptions image = options.image;
  if (image.height == 0) image.height = image.width = kDefaultImageSize;
  const auto cache = open_cache(std::filesystem::path(folder), image);
  std::int64_t num_slots = 0;
  const auto open = [&](ImageFolder split) -> std::unique_ptr<Dataset> {
    const std::int64_t first_slot = num_slots;
    num_slots += static_cast<std::int64_t>(split.files.size());
    return std::make_unique<ImageDataset>(std::move(split), image, cache, first_slot);
  };
  std::vector<std::string> class_names = folders.train.classes;
  // Training samples come first: they are read in every epoch.
  auto train = open(std::move(folders.train));
  std::unique_ptr<Dataset> validation;
  if (folders.validation) validation = open(*std::move(folders.validation));
  return {.name = "images",
          .train = std::move(train),
          .validation = std::move(validation),
          .test = open(std::move(folders.test)),
          // Of ImageNet, on which weights for pictures are usually trained.
          .mean = {0.485F, 0.456F, 0.406F},
          .stddev = {0.229F, 0.224F, 0.225F},
          .class_names = std::move(class_names),
          .suits_crop_flip = true};
}

}  // namespace syncopate
