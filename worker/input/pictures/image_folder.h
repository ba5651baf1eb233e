// Finds the pictures of images:DIR, where DIR has one folder per class.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace syncopate {

// A file of one picture.
struct ImageFile {
  std::string name;  // path relative to ImageFolder::root, "cat/1.jpg"
  std::int32_t label = 0;
  std::int64_t size_bytes = 0;
  std::int64_t modified = 0;  // nanoseconds since 1970

  friend bool operator==(const ImageFile&, const ImageFile&) = default;
};

// The pictures of one folder, sorted by the bytes of class and name.
struct ImageFolder {
  std::filesystem::path root;
  std::vector<std::string> classes;
  std::vector<ImageFile> files;
};

// The splits of images:DIR. Classes are the folders in DIR/train and in DIR/test, which must have
// the same classes. DIR/val has the validation pictures, or the test pictures if there is no
// DIR/test. The folders may also be named training, testing, valid, validation or eval, in upper or
// lower case, also followed by "_set". If no folder has a name of the training split, the word for
// a split may also be a part of a folder's name, such as "train" in "seg_train". If DIR has none of
// these folders, the classes are the folders in DIR, and one picture in ten, chosen by a hash of
// the class and the file's name, is a test picture.
struct ImageFolders {
  ImageFolder train;
  std::optional<ImageFolder> validation;
  ImageFolder test;
};

// Finds the pictures of images:DIR. The names of pictures end in .jpg, .jpeg, .jpe, .jfif or .png,
// in upper or lower case. Leaves out hidden files and folders, folders of operating systems
// (__MACOSX, @eaDir), and files with other extensions; follows links. Throws UsageError if the
// folder is missing or unreadable, has no folders of classes, or a class has no pictures. Throws
// UsageError if a link is broken, a picture has a format that is not supported (GIF, WebP, ...), or
// the splits have different classes.
ImageFolders find_images(const std::filesystem::path& folder);

// Returns a name for a message, with '?' in place of control characters such as newlines.
std::string printable(std::string_view name);

}  // namespace syncopate
