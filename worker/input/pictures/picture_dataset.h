// A data set of stored JPEG and PNG pictures with a class each, which are decoded when they are
// read. images:DIR and the records of tfds: and tfrecord: derive from it and say where a picture is
// stored.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "worker/input/dataset.h"
#include "worker/input/pictures/sample_cache.h"

namespace syncopate {

// Where the decoded pictures of a split are kept.
struct PictureCache {
  std::shared_ptr<SampleCache> file{};  // null: every read decodes
  std::int64_t first_slot = 0;          // of the split; other splits share the file
};

// Opens the cache of all splits of a data set, so that they share one limit; null: there is none.
// contents: names the data, such as the canonical path of their folder.
std::shared_ptr<SampleCache> open_picture_cache(std::string_view data_name,
                                                std::string_view contents,
                                                const ImageOptions& options);

class PictureDataset : public Dataset {
 public:
  const SampleSpec& spec() const noexcept final { return spec_; }
  void read(std::int64_t index, const Draw& draw, const SampleView& sample) const final;
  // The orientation counts too: with it the same bytes are other pixels.
  std::uint64_t fingerprint(std::int64_t index) const final;
  BadSamples* bad_samples() const noexcept final { return bad_.get(); }
  std::optional<StoredPicture> stored_picture(std::int64_t index) const final {
    return load(index);
  }

 protected:
  // options: with a size.
  PictureDataset(const ImageOptions& options, int num_classes, PictureCache cache);

 private:
  // Returns the stored bytes of a picture. Any thread. Throws FileError.
  virtual StoredPicture load(std::int64_t index) const = 0;
  // Returns a number that changes when the stored bytes do, without reading them.
  virtual std::uint64_t stamp(std::int64_t index) const = 0;

  // Decodes the whole picture, or the random part that `part` draws, which may be null.
  void decode(std::int64_t index, const Draw* part, std::span<std::byte> pixels) const;

  ImageOptions options_;
  SampleSpec spec_;
  std::unique_ptr<BadSamples> bad_;  // null: no picture may be damaged
  PictureCache cache_;
};

// Fills in what all data sets of pictures have: ImageNet's mean and deviation, on which weights for
// pictures are usually trained.
void describe_pictures(DataSplits& splits);

}  // namespace syncopate
