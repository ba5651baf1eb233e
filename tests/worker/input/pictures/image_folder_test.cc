// Which files of a folder are samples, and what a folder that cannot be used is answered.
#include "worker/input/pictures/image_folder.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "models/base/errors.h"
#include "tests/support/contains.h"
#include "tests/support/thrown.h"
#include "tests/worker/input/packed_files.h"
#include "tests/worker/input/picture_folder.h"

namespace syncopate {
namespace {

std::vector<std::string> names_of(const ImageFolder& folder) {
  std::vector<std::string> names;
  for (const ImageFile& file : folder.files) names.push_back(file.name);
  return names;
}

using Names = std::vector<std::string>;

class ImageFolderTest : public testing::Test {
 protected:
  // Writes an empty file: a folder is opened without reading its pictures.
  void touch(const std::string& name) const { folder_.write(name, {}); }
  // Returns the message for this folder, with the folder's path as DIR.
  std::string error() const {
    std::string text = message_of<UsageError>([&] { find_images(folder_.path()); });
    const std::string path = folder_.path().string();
    for (auto at = text.find(path); at != std::string::npos; at = text.find(path)) {
      text.replace(at, path.size(), "DIR");
    }
    return text;
  }
  PictureFolder folder_;
};

TEST_F(ImageFolderTest, NumbersClassesAndPicturesInByteOrder) {
  for (const char* name : {"train/b/2.png", "train/b/10.jpg", "train/B/x.JPEG", "train/a/y.PNG",
                           "test/a/1.jpg", "test/B/1.jpg", "test/b/1.jpg"}) {
    touch(name);
  }
  const ImageFolders folders = find_images(folder_.path());
  EXPECT_EQ(folders.train.classes, (Names{"B", "a", "b"}));
  EXPECT_EQ(names_of(folders.train), (Names{"B/x.JPEG", "a/y.PNG", "b/10.jpg", "b/2.png"}));
  EXPECT_EQ(folders.train.files[3].label, 2);
  EXPECT_EQ(names_of(folders.test), (Names{"B/1.jpg", "a/1.jpg", "b/1.jpg"}));
}

TEST_F(ImageFolderTest, TakesValForTheTestIfThereIsNoTest) {
  for (const char* name : {"train/a/1.jpg", "train/b/1.jpg", "val/a/2.jpg", "val/b/2.jpg"}) {
    touch(name);
  }
  EXPECT_EQ(names_of(find_images(folder_.path()).test), (Names{"a/2.jpg", "b/2.jpg"}));
  touch("test/a/3.jpg");
  touch("test/b/3.jpg");
  const ImageFolders folders = find_images(folder_.path());
  EXPECT_EQ(names_of(folders.test), (Names{"a/3.jpg", "b/3.jpg"}));
  ASSERT_TRUE(folders.validation.has_value()) << "val is for the validation beside test";
  EXPECT_EQ(names_of(*folders.validation), (Names{"a/2.jpg", "b/2.jpg"}));
}

TEST_F(ImageFolderTest, TakesOneFolderWithAnotherNameForTheValidation) {
  for (const char* name : {"train/a/1.jpg", "train/b/1.jpg", "test/a/1.jpg", "test/b/1.jpg"}) {
    touch(name);
  }
  for (const char* name : {"valid", "validation", "eval"}) {
    const std::filesystem::path split = folder_.path() / name;
    touch(split / "a/2.jpg");
    touch(split / "b/2.jpg");
    const ImageFolders folders = find_images(folder_.path());
    ASSERT_TRUE(folders.validation.has_value()) << name;
    EXPECT_EQ(folders.validation->root, split);
    std::filesystem::rename(split, folder_.path() / "val");
    EXPECT_EQ(names_of(*find_images(folder_.path()).validation), (Names{"a/2.jpg", "b/2.jpg"}));
    std::filesystem::rename(folder_.path() / "val", split);
    touch("val/a/1.jpg");
    EXPECT_EQ(error(), "--data images: DIR: folders " + std::min<std::string>("val", name) +
                           " and " + std::max<std::string>("val", name) +
                           "; expected one folder of validation pictures");
    std::filesystem::remove_all(folder_.path() / "val");
    std::filesystem::remove_all(split);
  }
}

TEST_F(ImageFolderTest, FindsSplitsOfOtherNamesInAnyCase) {
  for (const auto& [train, test, validation] :
       {std::array{"Training", "Testing", "Valid"}, std::array{"TRAIN", "Test", "VAL"},
        std::array{"training_set", "test_set", "validation-set"},
        std::array{"trainset", "testset", "valset"}}) {
    const PictureFolder data;
    for (const char* split : {train, test, validation}) {
      for (const char* picture : {"/a/1.jpg", "/b/1.jpg"}) {
        data.write(std::string(split) + picture, {});
      }
    }
    const ImageFolders folders = find_images(data.path());
    EXPECT_EQ(folders.train.root, data.path() / train);
    EXPECT_EQ(folders.test.root, data.path() / test);
    ASSERT_TRUE(folders.validation.has_value()) << validation;
    EXPECT_EQ(folders.validation->root, data.path() / validation);
  }
  for (const char* name : {"Train/a/1.jpg", "Train/b/1.jpg", "training/a/1.jpg"}) touch(name);
  EXPECT_EQ(error(),
            "--data images: DIR: folders Train and training; expected one folder of training "
            "pictures");
}

TEST_F(ImageFolderTest, FindsSplitsByAWordOfTheirNames) {
  for (const auto& [train, test, validation] :
       {std::array{"seg_train", "seg_test", "seg_val"},
        std::array{"Training Data", "Testing Data", "Validation Data"},
        std::array{"imagesTr", "imagesTs", "imagesVal"},
        std::array{"train_val", "test", "evalImages"}}) {
    const PictureFolder data;
    for (const char* split : {train, test, validation}) {
      for (const char* picture : {"/a/1.jpg", "/b/1.jpg"}) {
        data.write(std::string(split) + picture, {});
      }
    }
    data.write("test_lists/1.txt", {});
    const ImageFolders folders = find_images(data.path());
    EXPECT_EQ(folders.train.root, data.path() / train);
    EXPECT_EQ(folders.test.root, data.path() / test);
    ASSERT_TRUE(folders.validation.has_value()) << validation;
    EXPECT_EQ(folders.validation->root, data.path() / validation);
  }
}

TEST_F(ImageFolderTest, TakesFoldersForClassesWhoseNamesHaveTheWordOfASplit) {
  for (int i = 0; i < 40; ++i) {
    touch("bullet train/" + std::to_string(i) + ".jpg");
    touch("test tube/" + std::to_string(i) + ".jpg");
  }
  EXPECT_EQ(find_images(folder_.path()).train.classes, (Names{"bullet train", "test tube"}));
}

TEST_F(ImageFolderTest, ReadsNoFolderWithAWordOfASplitBesideTrain) {
  for (const char* name : {"train/a/1.jpg", "train/b/1.jpg", "test/a/1.jpg", "test/b/1.jpg",
                           "train_masks/a/1.jpg", "val_masks/c/1.jpg"}) {
    touch(name);
  }
  testing::internal::CaptureStderr();
  EXPECT_FALSE(find_images(folder_.path()).validation.has_value());
  EXPECT_TRUE(contains(testing::internal::GetCapturedStderr(),
                       "not read beside train: train_masks, val_masks;"));
}

TEST_F(ImageFolderTest, LeavesOutFoldersOfSystemsAndHiddenOnes) {
  for (const char* name :
       {"train/a/1.jpg", "train/b/1.jpg", "test/a/1.jpg", "test/b/1.jpg",
        "__MACOSX/train/a/._1.jpg", "train/__MACOSX/a/._1.jpg", "train/a/@eaDir/1.jpg/THUMB.jpg",
        "train/a/@tmp/1.jpg", "#snapshot/train/a/1.jpg", "train/b/.cache/1.jpg",
        "train/a/.DS_Store"}) {
    touch(name);
  }
  testing::internal::CaptureStderr();
  const ImageFolders folders = find_images(folder_.path());
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_EQ(names_of(folders.train), (Names{"a/1.jpg", "b/1.jpg"}));
  EXPECT_FALSE(contains(text, "not read beside train"));
  EXPECT_TRUE(contains(text, "left out 4 hidden or system folders, the first is __MACOSX"));
}

TEST_F(ImageFolderTest, NamesTheFolderInsideTheOneThatWasGiven) {
  touch("pictures/photos/a/1.jpg");
  touch("pictures/photos/b/1.jpg");
  touch("__MACOSX/pictures/x");
  touch("readme.txt");
  EXPECT_EQ(error(),
            "--data images: DIR: its one folder has folders of its own; expected a folder per "
            "class; give --data images:DIR/pictures/photos");
  std::filesystem::rename(folder_.path() / "pictures", folder_.path() / "train");
  EXPECT_EQ(error(),
            "--data images: DIR/train: its one folder has folders of its own; expected a folder "
            "per class; move them up: mv 'DIR/train/photos'/* 'DIR/train'/ && rmdir "
            "'DIR/train/photos'");
}

TEST_F(ImageFolderTest, CanBeReadAfterTheCommandThatMovesFoldersUp) {
  for (const char* name :
       {"train/all/photos/a/1.jpg", "train/all/photos/b/1.jpg", "test/a/2.jpg", "test/b/2.jpg"}) {
    touch(name);
  }
  const std::string message = message_of<UsageError>([&] { find_images(folder_.path()); });
  const std::string command = message.substr(message.find("mv '"));
  ASSERT_EQ(std::system(command.c_str()), 0) << command;
  EXPECT_EQ(names_of(find_images(folder_.path()).train), (Names{"a/1.jpg", "b/1.jpg"}));
}

TEST_F(ImageFolderTest, SaysWhatToDoWithTestPicturesWithoutClasses) {
  for (const char* name : {"train/a/1.jpg", "train/b/1.jpg", "test/1.jpg"}) touch(name);
  EXPECT_EQ(error(),
            "--data images: DIR/test: pictures without a folder per class; move each picture into "
            "a folder with the name of its class, or, if they have no classes, move this folder "
            "elsewhere");
}

TEST_F(ImageFolderTest, NamesFoldersBesideTrainThatAreNotRead) {
  for (const char* name : {"train/a/1.jpg", "train/b/1.jpg", "test/a/1.jpg", "test/b/1.jpg",
                           "dev/a/1.jpg", ".git/x", "extra/1.jpg", "README.md"}) {
    touch(name);
  }
  testing::internal::CaptureStderr();
  find_images(folder_.path());
  EXPECT_TRUE(
      contains(testing::internal::GetCapturedStderr(),
               "not read beside train: dev, extra; a folder of a split is test or testing or te "
               "or ts, or val or valid or validation or eval"));
  std::filesystem::rename(folder_.path() / "train", folder_.path() / "Training");
  testing::internal::CaptureStderr();
  find_images(folder_.path());
  EXPECT_TRUE(
      contains(testing::internal::GetCapturedStderr(), "not read beside Training: dev, extra;"));
}

TEST_F(ImageFolderTest, HoldsOutPicturesOfClassesWithTheSameNames) {
  for (int c = 0; c < 40; ++c) {
    for (int i = 0; i < 6; ++i) touch(std::to_string(c) + "/" + std::to_string(i) + ".jpg");
  }
  EXPECT_NEAR(static_cast<double>(find_images(folder_.path()).test.files.size()), 24, 14);
}

TEST_F(ImageFolderTest, HoldsOutOnePictureInTenOfASingleFolder) {
  for (int i = 0; i < 200; ++i) touch((i % 2 == 0 ? "a/" : "b/") + std::to_string(i) + ".jpg");
  const ImageFolders folders = find_images(folder_.path());
  EXPECT_EQ(folders.train.files.size() + folders.test.files.size(), 200U);
  EXPECT_NEAR(static_cast<double>(folders.test.files.size()), 20, 12);
  EXPECT_EQ(folders.train.classes, folders.test.classes);
  // Another picture moves no picture from one split to the other.
  touch("a/new.jpg");
  const ImageFolders later = find_images(folder_.path());
  for (const std::string& name : names_of(folders.test)) {
    const Names names = names_of(later.test);
    EXPECT_NE(std::find(names.begin(), names.end(), name), names.end()) << name;
  }
}

TEST_F(ImageFolderTest, TakesAClassWithTheNameTrain) {
  for (int i = 0; i < 40; ++i) {
    touch("car/" + std::to_string(i) + ".jpg");
    touch("train/" + std::to_string(i) + ".jpg");
  }
  EXPECT_EQ(find_images(folder_.path()).train.classes, (Names{"car", "train"}));
}

TEST_F(ImageFolderTest, LeavesOutHiddenFilesAndOtherFiles) {
  for (const char* name : {"train/a/1.jpg", "train/a/.2.jpg", "train/a/Thumbs.db", "train/b/1.jpg",
                           "train/.git/x.jpg", "train/README.md", "test/a/1.jpg", "test/b/1.jpg"}) {
    touch(name);
  }
  EXPECT_EQ(names_of(find_images(folder_.path()).train), (Names{"a/1.jpg", "b/1.jpg"}));
}

TEST_F(ImageFolderTest, FollowsLinks) {
  for (const char* name : {"store/1.jpg", "train/b/1.jpg", "test/a/1.jpg", "test/b/1.jpg"}) {
    touch(name);
  }
  std::filesystem::create_directory_symlink(folder_.path() / "store", folder_.path() / "train/a");
  std::filesystem::create_symlink(folder_.path() / "store/1.jpg", folder_.path() / "train/b/2.jpg");
  EXPECT_EQ(names_of(find_images(folder_.path()).train), (Names{"a/1.jpg", "b/1.jpg", "b/2.jpg"}));
  std::filesystem::create_symlink("nowhere", folder_.path() / "train/b/3.jpg");
  EXPECT_EQ(error(), "--data images: DIR/train/b/3.jpg: the link leads to no file");
}

TEST_F(ImageFolderTest, RefusesAFolderWithoutPicturesByClass) {
  EXPECT_EQ(error(), "--data images: DIR: no folders with pictures; expected one per class");
  touch("1.jpg");
  EXPECT_EQ(error(),
            "--data images: DIR: pictures without a folder per class; move each picture into a "
            "folder with the name of its class");
  touch("a/1.jpg");
  touch("b/readme.txt");
  EXPECT_EQ(error(),
            "--data images: DIR/b: the folder of a class has no pictures (.jpg, .jpeg, .png); put "
            "some there, or remove the folder");
  EXPECT_EQ(message_of<UsageError>([] { find_images("/absent"); }),
            "--data images: /absent: no such folder");
  touch("file.jpg");
  const std::string file = (folder_.path() / "file.jpg").string();
  EXPECT_EQ(message_of<UsageError>([&] { find_images(file); }),
            "--data images: " + file + ": is a file; expected a folder");
}

TEST_F(ImageFolderTest, RefusesOneClass) {
  touch("a/1.jpg");
  EXPECT_EQ(error(),
            "--data images: DIR: one class; expected a folder for each of several classes");
}

TEST_F(ImageFolderTest, NamesTheDifferenceBetweenTwoListsOfClasses) {
  for (const char* name : {"train/a/1.jpg", "train/b/1.jpg", "test/a/1.jpg", "test/c/1.jpg"}) {
    touch(name);
  }
  EXPECT_EQ(error(),
            "--data images: DIR/test: other classes than in DIR/train: missing here: b; only here: "
            "c");
}

TEST_F(ImageFolderTest, NamesFormatsThatAreNotSupported) {
  touch("a/1.jpg");
  touch("a/2.WebP");
  EXPECT_EQ(error(),
            "--data images: DIR/a/2.WebP: only JPEG and PNG are supported; convert the file or "
            "remove it");
}

TEST_F(ImageFolderTest, RefusesAFolderInsideAClass) {
  touch("a/1.jpg");
  touch("a/more/2.jpg");
  EXPECT_EQ(error(),
            "--data images: DIR/a/more: a folder inside the folder of a class; put its pictures "
            "into the folder of the class, or, if a is a split, name it train, test or val");
}

TEST_F(ImageFolderTest, KeepsMessagesOnOneLine) {
  touch("a\nb/x.gif");
  EXPECT_EQ(error().find('\n'), std::string::npos);
  EXPECT_EQ(printable("a\nb\x7F.jpg"), "a?b?.jpg");
  EXPECT_EQ(printable("\xC3\xA4.jpg"), "\xC3\xA4.jpg");
}

TEST_F(ImageFolderTest, NamesAFolderThatMayNotBeRead) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may read every folder";
  touch("a/1.jpg");
  touch("b/1.jpg");
  ::chmod((folder_.path() / "b").c_str(), 0);
  EXPECT_EQ(error(), "--data images: DIR/b: Permission denied");
  ::chmod((folder_.path() / "b").c_str(), 0700);
}

}  // namespace
}  // namespace syncopate
