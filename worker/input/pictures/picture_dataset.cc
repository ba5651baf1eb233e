#include "worker/input/pictures/picture_dataset.h"

#include <fmt/format.h>

#include <cstring>
#include <string>
#include <utility>

#include "models/base/errors.h"
#include "models/base/random.h"
#include "worker/input/image/image_decoder.h"
#include "worker/input/image/random_resized_crop.h"

namespace syncopate {

std::shared_ptr<SampleCache> open_picture_cache(std::string_view data_name,
                                                std::string_view contents,
                                                const ImageOptions& options) {
  if (options.cache_dir.empty() || options.cache_mb == 0) return nullptr;
  const std::string key =
      fmt::format("{} {}x{} {}", contents, options.height, options.width, options.apply_exif);
  return SampleCache::open(
      options.cache_dir / fmt::format("{}-{:016x}.samples", data_name, hash_name(key)),
      options.height * options.width * 3, options.cache_mb < 0 ? -1 : options.cache_mb * 1'000'000);
}

PictureDataset::PictureDataset(const ImageOptions& options, int num_classes, PictureCache cache)
    : options_(options),
      spec_(classified_samples({options.height, options.width, 3}, num_classes)),
      bad_(options.skip_bad_records > 0 ? std::make_unique<BadSamples>(options.skip_bad_records)
                                        : nullptr),
      cache_(std::move(cache)) {}

void PictureDataset::read(std::int64_t index, const Draw& draw, const SampleView& sample) const {
  const std::span<std::byte> pixels = sample.inputs[0];
  const std::int32_t label = this->label(index);
  std::memcpy(sample.target.data(), &label, sizeof label);
  if (draw.kind == Augment::kRandomResizedCrop) {
    decode(index, &draw, pixels);
    return;
  }
  const std::int64_t slot = cache_.first_slot + index;
  const std::uint64_t key = cache_.file ? stamp(index) : 0;
  if (!cache_.file || !cache_.file->read(slot, key, pixels)) {
    decode(index, nullptr, pixels);
    if (cache_.file) cache_.file->write(slot, key, pixels);
  }
  apply_draw(draw, spec_.inputs[0], pixels, pixels);
}

std::uint64_t PictureDataset::fingerprint(std::int64_t index) const {
  try {
    const StoredPicture picture = load(index);
    const std::uint64_t hash =
        hash_name({reinterpret_cast<const char*>(picture.bytes.data()), picture.bytes.size()});
    return options_.apply_exif ? ~hash : hash;
  } catch (const BadSampleError&) {
    throw;
  } catch (const FileError&) {
    if (bad_ == nullptr) throw;
    return 0;  // read() reports it, and may skip the picture
  }
}

void PictureDataset::decode(std::int64_t index, const Draw* part,
                            std::span<std::byte> pixels) const {
  try {
    const StoredPicture picture = load(index);
    const ImageHeader header = read_image_header(picture.bytes, picture.name);
    DecodeOptions options{
        .width = options_.width, .height = options_.height, .apply_exif = options_.apply_exif};
    if (part != nullptr) {
      const bool transposed =
          options.apply_exif && Orientation::from_exif(header.exif_orientation).transposed;
      options.crop = random_resized_crop(part->bits, transposed ? header.height : header.width,
                                         transposed ? header.width : header.height);
      options.mirror = part->flip;
    }
    decode_image(picture.bytes, picture.name, header, options,
                 {reinterpret_cast<std::uint8_t*>(pixels.data()), pixels.size()});
  } catch (const BadSampleError&) {
    throw;
  } catch (const FileError& error) {
    if (bad_ != nullptr) throw;
    throw FileError(fmt::format("{}; --skip-bad-records N goes on without up to N such pictures",
                                error.what()));
  }
}

void describe_pictures(DataSplits& splits) {
  splits.mean = {0.485F, 0.456F, 0.406F};
  splits.stddev = {0.229F, 0.224F, 0.225F};
  splits.suits_crop_flip = true;
}

}  // namespace syncopate
