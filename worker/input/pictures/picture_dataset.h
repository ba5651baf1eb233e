// The base class of data sets of stored JPEG and PNG pictures, each with a class. Pictures are
// decoded when they are read. The data sets of images:DIR and of records in tfds: and tfrecord:
// derive from it and load the stored bytes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "worker/input/dataset.h"
#include "worker/input/pictures/sample_cache.h"

namespace syncopate {

// The place of a split's decoded pictures in the cache.
struct PictureCache {
  std::shared_ptr<SampleCache> file{};  // null: no cache, so every read decodes
  std::int64_t first_slot = 0;  // first slot of the split; other splits use other slots of the file
};

// Opens one cache file for all splits of a data set, so that they share one limit. Returns null if
// there is no cache. contents: identifies the data, such as the canonical path of their folder.
std::shared_ptr<SampleCache> open_picture_cache(std::string_view data_name,
                                                std::string_view contents,
                                                const ImageOptions& options);

class PictureDataset : public Dataset {
 public:
  const SampleSpec& spec() const noexcept final { return spec_; }
  void read(std::int64_t index, const Draw& draw, const SampleView& sample) const final;
  // Returns a hash of a picture's stored bytes and of the option --exif, because this option
  // changes the pixels that are decoded from the bytes.
  std::uint64_t fingerprint(std::int64_t index) const final;
  BadSamples* bad_samples() const noexcept final { return bad_.get(); }
  std::optional<StoredPicture> stored_picture(std::int64_t index) const final {
    return load(index);
  }

 protected:
  // options: how pictures are decoded; must have a size, see ImageOptions::with_size().
  PictureDataset(const ImageOptions& options, int num_classes, PictureCache cache);

 private:
  // Returns the stored bytes of a picture. Any thread. Throws FileError.
  virtual StoredPicture load(std::int64_t index) const = 0;
  // Returns a number that changes if the stored bytes of a picture change. Does not read the bytes.
  virtual std::uint64_t stamp(std::int64_t index) const = 0;

  // Decodes the whole picture if `part` is null, else the random part that `part` selects.
  void decode(std::int64_t index, const Draw* part, std::span<std::byte> pixels) const;

  ImageOptions options_;
  SampleSpec spec_;
  std::unique_ptr<BadSamples> bad_;  // null: no picture may be damaged
  PictureCache cache_;
};

// Sets the members of `splits` that are the same for all data sets of pictures, such as `mean` and
// `stddev`. These get ImageNet's values, which published weights for pictures usually expect.
void describe_pictures(DataSplits& splits);

}  // namespace syncopate
