// images:DIR as a data set: pixels, labels, errors, the cache, and the laws of the pipeline.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <thread>

#include "models/base/errors.h"
#include "tests/support/contains.h"
#include "tests/support/thrown.h"
#include "tests/worker/input/packed_files.h"
#include "tests/worker/input/picture_folder.h"
#include "tests/worker/input/read_sample.h"
#include "worker/input/batches/batch_source.h"
#include "worker/input/image/image_decoder.h"

namespace syncopate {
namespace {

using Pixels = std::vector<std::uint8_t>;

constexpr std::int64_t kSize = 12;

class Images : public testing::Test {
 protected:
  DataSplits open(bool with_cache = false, bool apply_exif = false) const {
    ImageOptions image{.height = kSize, .width = kSize, .apply_exif = apply_exif};
    if (with_cache) image.cache_dir = cache_.path() / "deep" / "folder";
    return open_dataset(folder_.data_flag(), {.image = image});
  }
  static Pixels read(const Dataset& dataset, std::int64_t index) {
    Pixels pixels(kSize * kSize * 3);
    read_sample(dataset, index, pixels);
    return pixels;
  }
  static std::string error_of(const Dataset& dataset, std::int64_t index) {
    return message_of<FileError>([&] { read(dataset, index); });
  }
  // The one cache file of training samples.
  std::filesystem::path cache_file() const {
    std::filesystem::path largest;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(cache_.path())) {
      if (!entry.is_regular_file()) continue;
      if (largest.empty() || entry.file_size() > std::filesystem::file_size(largest)) {
        largest = entry.path();
      }
    }
    return largest;
  }
  void write_bad_picture() const { folder_.write_text("train/cat/0.JPG", "<html>not found"); }

  PictureFolder folder_;
  TemporaryFolder cache_;
};

TEST_F(Images, AreDecodedToOneSize) {
  folder_.write_splits(5);
  const DataSplits splits = open();
  EXPECT_EQ(splits.name, "images");
  EXPECT_EQ(splits.train->size(), 5);
  EXPECT_EQ(splits.test->size(), 2);
  EXPECT_EQ(splits.class_names, (std::vector<std::string>{"cat", "dog"}));
  EXPECT_EQ(splits.train->spec().num_classes, 2);
  EXPECT_EQ(sample_shape(*splits.train), (Shape{kSize, kSize, 3}));
  Pixels expected(kSize * kSize * 3);
  const FileBytes file = make_png(make_picture(20 + 2, 16, 3, 2));
  decode_image(file, "x", read_image_header(file, "x"), {.width = kSize, .height = kSize},
               expected);
  EXPECT_EQ(read(*splits.train, 1), expected) << "train/cat/2.png";
  EXPECT_EQ(splits.train->label(1), 0);
  EXPECT_EQ(splits.train->label(3), 1);
}

TEST_F(Images, HaveASizeOf224WithoutAFlag) {
  folder_.write_splits(4);
  EXPECT_EQ(sample_shape(*open_dataset(folder_.data_flag(), {}).train), (Shape{224, 224, 3}));
}

TEST_F(Images, AreTurnedUprightOnRequest) {
  folder_.write_splits(4);
  folder_.write("train/cat/0.JPG", make_jpeg(make_picture(16, 16), {.exif_orientation = 6}));
  Pixels upright(kSize * kSize * 3);
  const DataSplits stored = open();
  const DataSplits shown = open(false, true);
  orient_pixels(read(*stored.train, 0), kSize, kSize, 3, Orientation::from_exif(6), upright);
  EXPECT_EQ(read(*shown.train, 0), upright);
  EXPECT_NE(stored.train->fingerprint(0), shown.train->fingerprint(0));
}

TEST_F(Images, RefuseTheirFlagsForOtherData) {
  folder_.write_splits(4);
  EXPECT_TRUE(open().takes_image_size);
  EXPECT_FALSE(open_dataset("synthetic:1x8x8:4", {}).takes_image_size);
  EXPECT_EQ(message_of<UsageError>(
                [] { open_dataset("synthetic:1x8x8:4", {.image = {.height = 8, .width = 8}}); }),
            "--image-size is for --data images:DIR, tfds:DIR, "
            "tfrecord:GLOB[::[VAL_GLOB::]TEST_GLOB]; this is "
            "--data synthetic");
  EXPECT_EQ(message_of<UsageError>(
                [] { open_dataset("synthetic:1x8x8:4", {.image = {.apply_exif = true}}); }),
            "--exif is for --data images:DIR, tfds:DIR, tfrecord:GLOB[::[VAL_GLOB::]TEST_GLOB]; "
            "this is --data "
            "synthetic");
}

TEST_F(Images, NameAFileThatIsNoPicture) {
  folder_.write_splits(4);
  write_bad_picture();
  const std::string path = (folder_.path() / "train/cat/0.JPG").string();
  EXPECT_EQ(error_of(*open().train, 0),
            path +
                ": expected a JPEG or PNG file, found HTML at byte 0; --skip-bad-records N goes "
                "on without up to N such pictures");
}

TEST_F(Images, HaveAFingerprintThoughTheyCannotBeReadOnlyIfTheyMayBeSkipped) {
  folder_.write_splits(6);
  const ImageOptions image{.height = kSize, .width = kSize, .skip_bad_records = 2};
  const DataSplits skipping = open_dataset(folder_.data_flag(), {.image = image});
  const DataSplits strict = open();
  std::filesystem::remove(folder_.path() / "train/cat/0.JPG");
  EXPECT_NO_THROW(skipping.train->fingerprint(0));
  EXPECT_EQ(skipping.train->bad_samples()->limit(), 2);
  EXPECT_THROW(strict.train->fingerprint(0), FileError);
  EXPECT_EQ(strict.train->bad_samples(), nullptr);
}

TEST_F(Images, AreNotReadFromAFileThatIsTooLarge) {
  folder_.write_splits(4);
  const std::filesystem::path path = folder_.path() / "train/cat/0.JPG";
  std::filesystem::resize_file(path, std::uintmax_t{1} << 40);
  EXPECT_EQ(error_of(*open().train, 0),
            path.string() +
                ": 1099511627776 bytes; expected a picture of at most 256 MB; "
                "--skip-bad-records N goes on without up to N such pictures");
}

TEST_F(Images, TakeAPngFileWithTheNameOfAJpegFile) {
  folder_.write_splits(4);
  folder_.write("train/cat/0.JPG", make_png(make_picture(kSize, kSize)));
  EXPECT_EQ(read(*open().train, 0), make_picture(kSize, kSize).pixels);
}

TEST_F(Images, RefuseAFileThatChangedWhileItWasInUse) {
  folder_.write_splits(4);
  const DataSplits splits = open();
  folder_.write("train/cat/0.JPG", make_jpeg(make_picture(17, 17)));
  EXPECT_TRUE(contains(error_of(*splits.train, 0), "the file changed while it was in use"));
  std::filesystem::remove(folder_.path() / "train/cat/0.JPG");
  EXPECT_TRUE(contains(error_of(*splits.train, 0), "No such file"));
}

TEST_F(Images, HaveTheSamePixelsWithACache) {
  folder_.write_splits(6);
  const DataSplits plain = open();
  const DataSplits first = open(true);
  const DataSplits second = open(true);  // as another process would
  for (int round = 0; round < 2; ++round) {
    for (std::int64_t i = 0; i < 6; ++i) {
      EXPECT_EQ(read(*first.train, i), read(*plain.train, i));
      EXPECT_EQ(read(*second.train, i), read(*plain.train, i));
    }
  }
}

TEST_F(Images, HaveTheSamePixelsWhileSeveralReadersFillOneCache) {
  constexpr std::int64_t kCount = 12;
  folder_.write_splits(kCount);
  const DataSplits plain = open();
  std::vector<Pixels> expected;
  for (std::int64_t i = 0; i < kCount; ++i) expected.push_back(read(*plain.train, i));
  // Two data sets, as two processes have them, and three threads each.
  const DataSplits first = open(true);
  const DataSplits second = open(true);
  std::atomic<int> num_wrong = 0;
  {
    std::vector<std::jthread> readers;
    for (int reader = 0; reader < 6; ++reader) {
      readers.emplace_back([&, reader] {
        const Dataset& dataset = reader % 2 == 0 ? *first.train : *second.train;
        for (std::int64_t i = 0; i < 3 * kCount; ++i) {
          const std::int64_t index = (i * 5 + reader) % kCount;
          if (read(dataset, index) != expected[static_cast<std::size_t>(index)]) ++num_wrong;
        }
      });
    }
  }
  EXPECT_EQ(num_wrong, 0);
}

TEST_F(Images, AreNotDecodedAgainWhenTheCacheHasThem) {
  folder_.write_splits(4);
  const DataSplits splits = open(true);
  const Pixels pixels = read(*splits.train, 0);
  std::filesystem::remove(folder_.path() / "train/cat/0.JPG");
  EXPECT_EQ(read(*splits.train, 0), pixels);
}

TEST_F(Images, AreDecodedAgainWhenTheFileIsNew) {
  folder_.write_splits(4);
  read(*open(true).train, 0);
  folder_.write("train/cat/0.JPG", make_jpeg(make_picture(30, 30, 3, 9)));
  EXPECT_EQ(read(*open(true).train, 0), read(*open().train, 0));
}

TEST_F(Images, SurviveEveryTruncationOfTheCache) {
  folder_.write_splits(3);
  const DataSplits plain = open();
  {
    const DataSplits splits = open(true);
    for (std::int64_t i = 0; i < 3; ++i) read(*splits.train, i);
  }
  const auto size = static_cast<std::int64_t>(std::filesystem::file_size(cache_file()));
  for (std::int64_t cut = size; cut >= 0; cut -= 7) {
    std::filesystem::resize_file(cache_file(), static_cast<std::uintmax_t>(cut));
    const DataSplits splits = open(true);
    for (std::int64_t i = 0; i < 3; ++i) {
      ASSERT_EQ(read(*splits.train, i), read(*plain.train, i)) << "cut at " << cut;
    }
  }
}

TEST_F(Images, SurviveEveryBitFlipInTheCache) {
  folder_.write_splits(2);
  const Pixels expected = read(*open().train, 0);
  const DataSplits splits = open(true);
  read(*splits.train, 0);
  const std::filesystem::path path = cache_file();
  const std::size_t slot_bytes = expected.size() + 8;
  for (std::size_t bit = 0; bit < slot_bytes * 8; ++bit) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(static_cast<std::streamoff>(bit / 8));
    const auto byte = static_cast<char>(file.get() ^ (1 << (bit % 8)));
    file.seekp(static_cast<std::streamoff>(bit / 8));
    file.put(byte);
    file.close();
    ASSERT_EQ(read(*splits.train, 0), expected) << "bit " << bit;
  }
}

TEST_F(Images, AreReadWithoutACacheThatCannotBeWritten) {
  folder_.write_splits(2);
  std::ofstream(cache_.path() / "deep") << "a file where the folder should be";
  EXPECT_EQ(read(*open(true).train, 0), read(*open().train, 0));
}

TEST_F(Images, KeepNoMoreThanTheLimitInTheCacheOfAllSplits) {
  folder_.write_splits(2, 4);
  ImageOptions image{.height = 400, .width = 400, .cache_dir = cache_.path(), .cache_mb = 1};
  Pixels pixels(400 * 400 * 3);
  for (const char* const path : {"", "/.", "/train/.."}) {
    const DataSplits splits = open_dataset(folder_.data_flag() + path, {.image = image});
    for (std::int64_t i = 0; i < 2; ++i) read_sample(*splits.train, i, pixels);
    for (std::int64_t i = 0; i < 4; ++i) read_sample(*splits.test, i, pixels);
  }
  std::uintmax_t bytes = 0;
  for (const auto& entry : std::filesystem::directory_iterator(cache_.path())) {
    bytes += entry.file_size();
  }
  EXPECT_EQ(bytes, 2 * (pixels.size() + 8));
}

// One epoch as (pixels, label) per sample, in order, over all shards of every batch.
std::vector<std::pair<Pixels, std::int32_t>> epoch_of(const Dataset& dataset, InputOptions options,
                                                      int shards) {
  std::vector<std::unique_ptr<BatchSource>> sources;
  for (int shard = 0; shard < shards; ++shard) {
    options.shard = {shard, 1, shards};
    sources.push_back(make_batch_source(dataset, options));
  }
  std::vector<std::pair<Pixels, std::int32_t>> samples;
  const std::size_t bytes = kSize * kSize * 3;
  for (std::int64_t batch = 0; batch < sources[0]->batches_per_epoch(); ++batch) {
    for (const auto& source : sources) {
      const Batch& part = source->next();
      for (std::size_t i = 0; i < static_cast<std::size_t>(part.num_samples); ++i) {
        const auto pixels = part.inputs[0].u8().subspan(i * bytes, bytes);
        samples.emplace_back(Pixels(pixels.begin(), pixels.end()), part.target.i32()[i]);
      }
    }
  }
  return samples;
}

// For every number of ranks and threads, and sizes around the batch: each sample exactly once, and
// one order.
TEST_F(Images, ComeOnceAndInOneOrderForAllRanksAndThreads) {
  constexpr int kBatch = 7;
  for (const int size : {2, kBatch - 1, kBatch, kBatch + 1}) {
    const PictureFolder folder;
    folder.write_splits(size);
    const ImageOptions image{.height = kSize, .width = kSize};
    const DataSplits splits = open_dataset(folder.data_flag(), {.image = image});
    std::vector<std::pair<Pixels, std::int32_t>> all;
    for (std::int64_t i = 0; i < size; ++i) {
      all.emplace_back(read(*splits.train, i), splits.train->label(i));
    }
    std::sort(all.begin(), all.end());
    const InputOptions one{.batch_size = kBatch, .seed = 5, .drop_remainder = false};
    const auto order = epoch_of(*splits.train, one, 1);
    auto sorted = order;
    std::sort(sorted.begin(), sorted.end());
    EXPECT_EQ(sorted, all) << size;
    for (const int shards : {1, 2, 3, 7}) {
      for (const int threads : {1, 2, 8}) {
        InputOptions options = one;
        options.threads = threads;
        EXPECT_EQ(epoch_of(*splits.train, options, shards), order)
            << size << " samples, " << shards << " ranks, " << threads << " threads";
      }
    }
  }
}

TEST_F(Images, ContinueWithTheSameBitsAtEveryPositionWithAndWithoutACache) {
  folder_.write_splits(11);
  const DataSplits plain = open();
  const DataSplits cached = open(true);
  const InputOptions options{.batch_size = 2, .augment = Augment::kCropFlip, .threads = 2};
  constexpr int kBatches = 12;  // more than two epochs of five batches
  std::vector<Pixels> expected;
  const auto whole = make_batch_source(*plain.train, options);
  std::vector<ps::DataPosition> positions;
  for (int i = 0; i < kBatches; ++i) {
    positions.push_back(whole->position());
    const auto pixels = whole->next().inputs[0].u8();
    expected.emplace_back(pixels.begin(), pixels.end());
  }
  for (int from = 0; from < kBatches; ++from) {
    for (const Dataset* dataset : {plain.train.get(), cached.train.get()}) {
      const auto source = make_batch_source(*dataset, options, positions[from]);
      for (int i = from; i < kBatches; ++i) {
        const auto pixels = source->next().inputs[0].u8();
        ASSERT_EQ(Pixels(pixels.begin(), pixels.end()), expected[i]) << "from " << from;
      }
    }
  }
}

// Photographs with mixed chroma subsampling; three of them are 3024x3024 and lie on their side.
TEST(SignDigits, AreDecodedAndTurnedUpright) {
  const std::filesystem::path folder = SYNCOPATE_SHARED_FOLDER "/data/sign_digits";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << folder << " is absent";
  const auto open = [&](bool apply_exif) {
    return open_dataset("images:" + folder.string(),
                        {.image = {.height = kSize, .width = kSize, .apply_exif = apply_exif}});
  };
  const DataSplits stored = open(false);
  const DataSplits shown = open(true);
  EXPECT_EQ(stored.train->size(), 1663);
  EXPECT_EQ(stored.test->size(), 399);
  EXPECT_EQ(stored.train->spec().num_classes, 10);
  Pixels pixels(kSize * kSize * 3);
  Pixels turned(pixels.size());
  int num_turned = 0;
  for (std::int64_t i = 0; i < 399; ++i) {
    read_sample(*stored.test, i, pixels);
    read_sample(*shown.test, i, turned);
    if (pixels != turned) ++num_turned;
  }
  EXPECT_EQ(num_turned, 3);
}

}  // namespace
}  // namespace syncopate
