// Finds the pictures of a folder that has one folder per class, as images:DIR names it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace syncopate {

// A file that holds one picture.
struct ImageFile {
  std::string name;  // path inside the folder, "cat/1.jpg"
  std::int32_t label = 0;
  std::int64_t size_bytes = 0;
  std::int64_t modified = 0;  // nanoseconds since 1970

  friend bool operator==(const ImageFile&, const ImageFile&) = default;
};

// The pictures of one folder, in the byte order of class and name.
struct ImageFolder {
  std::filesystem::path root;
  std::vector<std::string> classes;
  std::vector<ImageFile> files;
};

// The pictures of images:DIR. Classes are the folders in DIR/train and in DIR/test, which must be
// alike. DIR/val has the validation pictures, or the test pictures if there is no DIR/test. The
// folders may also be named training, testing, valid, validation or eval, in any case, with "_set"
// behind or as a word of the name, such as "seg_train", if no folder is named train or training.
// Without these folders the classes are the folders in DIR, and one picture in ten is a test
// picture, chosen by a hash of the class and the file's name.
struct ImageFolders {
  ImageFolder train;
  std::optional<ImageFolder> validation;
  ImageFolder test;
};

// Hidden files and folders, folders of a system (__MACOSX, @eaDir) and files without a picture's
// extension are left out; links are followed. The names
// of pictures end in .jpg, .jpeg, .jpe, .jfif or .png, in any case. Throws UsageError: the folder
// is missing or unreadable, has no folder per class, or a class has no pictures; a link leads
// nowhere; a picture of a format that is not supported (GIF, WebP, ...); classes that differ.
ImageFolders find_images(const std::filesystem::path& folder);

// Returns a file name for a message: control characters, such as newlines, become '?'.
std::string printable(std::string_view name);

}  // namespace syncopate
