// Pictures in the records of tfds:DIR and tfrecord:GLOB.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "models/base/random.h"
#include "worker/input/pictures/picture_dataset.h"
#include "worker/input/record/record_samples.h"

namespace syncopate {
namespace {

class RecordPictures final : public PictureDataset {
 public:
  RecordPictures(std::shared_ptr<const RecordShards> shards, FeatureName image,
                 const ImageOptions& options, int num_classes, PictureCache cache)
      : PictureDataset(options, num_classes, std::move(cache)),
        shards_(std::move(shards)),
        image_(std::move(image)) {}

  std::int64_t size() const noexcept override { return shards_->size(); }
  // A damaged record has class 0; its picture cannot be read.
  std::int32_t label(std::int64_t index) const override {
    return static_cast<std::int32_t>(std::max<std::int64_t>(0, shards_->value(index)));
  }

 private:
  std::uint64_t stamp(std::int64_t index) const override {
    return shards_->stamp(index) ^ hash_name(image_.name);
  }

  StoredPicture load(std::int64_t index) const override {
    std::string what = shards_->describe(index);
    auto example = std::make_shared<const Example>(parse_example(shards_->read(index), what));
    const Feature image = require_one_value(*example, image_, FeatureKind::kBytes, "picture", what);
    return {.name = std::move(what), .bytes = image.bytes, .memory = std::move(example)};
  }

  std::shared_ptr<const RecordShards> shards_;
  FeatureName image_;
};

}  // namespace

std::unique_ptr<Dataset> make_record_pictures(std::shared_ptr<const RecordShards> shards,
                                              const FeatureName& image, const ImageOptions& options,
                                              int num_classes, std::shared_ptr<SampleCache> cache,
                                              std::int64_t first_slot) {
  return std::make_unique<RecordPictures>(std::move(shards), image, options, num_classes,
                                          PictureCache{std::move(cache), first_slot});
}

}  // namespace syncopate
