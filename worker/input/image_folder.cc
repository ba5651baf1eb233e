#include "worker/input/image_folder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <string_view>

#include "models/base/errors.h"
#include "models/base/log.h"
#include "models/base/random.h"

namespace syncopate {
namespace {

namespace fs = std::filesystem;

constexpr std::uint32_t kOneIn = 10;
// The names that data sets give to the folder of validation pictures.
constexpr std::array<std::string_view, 3> kValidationNames = {"val", "valid", "validation"};

// What the extension of a file name says.
enum class Extension : std::uint8_t { kPicture, kUnsupported, kOther };

Extension extension_of(const std::string& name) {
  constexpr std::array<std::string_view, 5> kPictures = {".jpg", ".jpeg", ".jpe", ".jfif", ".png"};
  constexpr std::array<std::string_view, 8> kUnsupported = {".gif",  ".webp", ".bmp",  ".tif",
                                                            ".tiff", ".avif", ".heic", ".heif"};
  std::string extension = fs::path(name).extension().string();
  std::transform(extension.begin(), extension.end(), extension.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  if (std::ranges::find(kPictures, extension) != kPictures.end()) return Extension::kPicture;
  if (std::ranges::find(kUnsupported, extension) != kUnsupported.end()) {
    return Extension::kUnsupported;
  }
  return Extension::kOther;
}

[[noreturn]] void refuse(const fs::path& path, std::string_view reason) {
  throw UsageError(fmt::format("--data images: {}: {}", printable(path.string()), reason));
}

struct Entry {
  std::string name;
  struct stat status = {};
};

// Returns the entries of a folder that are not hidden, in the byte order of their names.
std::vector<Entry> entries_of(const fs::path& folder) {
  std::error_code error;
  fs::directory_iterator iterator(folder, error);
  if (error) refuse(folder, error.message());
  std::vector<Entry> entries;
  for (; iterator != fs::directory_iterator(); iterator.increment(error)) {
    if (error) refuse(folder, error.message());
    Entry entry{iterator->path().filename().string()};
    if (entry.name.starts_with('.')) continue;
    if (::stat(iterator->path().c_str(), &entry.status) != 0) {
      const int code = errno;
      refuse(iterator->path(), iterator->is_symlink(error) && code == ENOENT
                                   ? "the link leads to no file"
                                   : std::generic_category().message(code));
    }
    entries.push_back(std::move(entry));
  }
  std::ranges::sort(entries, {}, &Entry::name);
  return entries;
}

bool is_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

bool has_folders(const fs::path& path) {
  return std::ranges::any_of(entries_of(path),
                             [](const Entry& entry) { return S_ISDIR(entry.status.st_mode); });
}

// Appends the pictures of one class. Returns the number of files that are no pictures.
std::int64_t add_class(const std::string& name, ImageFolder& folder) {
  const fs::path path = folder.root / name;
  const auto label = static_cast<std::int32_t>(folder.classes.size());
  const std::size_t before = folder.files.size();
  std::int64_t num_others = 0;
  for (const Entry& entry : entries_of(path)) {
    if (S_ISDIR(entry.status.st_mode)) {
      refuse(
          path / entry.name,
          "a folder inside the folder of a class; put its pictures into the folder of the class");
    }
    const Extension extension = extension_of(entry.name);
    if (extension == Extension::kUnsupported) {
      refuse(path / entry.name, "only JPEG and PNG are supported; convert the file or remove it");
    }
    if (extension == Extension::kOther || !S_ISREG(entry.status.st_mode)) {
      ++num_others;
      continue;
    }
    const timespec& modified = entry.status.st_mtim;
    folder.files.push_back({name + "/" + entry.name, label, entry.status.st_size,
                            modified.tv_sec * 1'000'000'000 + modified.tv_nsec});
  }
  if (folder.files.size() == before) {
    refuse(path, "the folder of a class has no pictures (.jpg, .jpeg, .png)");
  }
  folder.classes.push_back(name);
  return num_others;
}

ImageFolder scan(const fs::path& root) {
  ImageFolder folder{root, {}, {}};
  std::int64_t num_others = 0;
  bool has_pictures = false;
  for (const Entry& entry : entries_of(root)) {
    if (S_ISDIR(entry.status.st_mode)) {
      num_others += add_class(entry.name, folder);
    } else if (extension_of(entry.name) == Extension::kPicture) {
      has_pictures = true;
    }
  }
  if (folder.classes.size() < 2) {
    refuse(root, has_pictures ? "pictures without a folder per class; move each picture into a "
                                "folder with the name of its class"
                 : folder.classes.empty()
                     ? "no folders with pictures; expected one per class"
                     : "one class; expected a folder for each of several classes");
  }
  if (num_others > 0) {
    log(LogLevel::kWarning,
        fmt::format("--data images: {}: left out {} file{} without the "
                    "extension of a picture",
                    printable(root.string()), num_others, num_others == 1 ? "" : "s"));
  }
  return folder;
}

// Returns the classes that are in one list only, as a text for a message.
std::string missing_from(const std::vector<std::string>& list,
                         const std::vector<std::string>& others) {
  std::string text;
  for (const std::string& name : others) {
    if (std::ranges::find(list, name) != list.end()) continue;
    text += (text.empty() ? "" : ", ") + printable(name);
  }
  return text.empty() ? "none" : text;
}

void require_same_classes(const ImageFolder& train, const ImageFolder& test) {
  if (train.classes == test.classes) return;
  refuse(test.root,
         fmt::format("other classes than in {}: missing here: {}; only here: {}",
                     printable(train.root.string()), missing_from(test.classes, train.classes),
                     missing_from(train.classes, test.classes)));
}

// Moves one picture in ten from `all` to a new folder of test pictures.
ImageFolders hold_out(ImageFolder all) {
  ImageFolders folders{{all.root, all.classes, {}}, std::nullopt, {all.root, all.classes, {}}};
  for (ImageFile& file : all.files) {
    // With its class, because the pictures of every class may have the same names.
    const bool is_test = RandomStream(hash_name(file.name), 0).below(0, kOneIn) == 0;
    (is_test ? folders.test : folders.train).files.push_back(std::move(file));
  }
  if (folders.test.files.empty() || folders.train.files.empty()) {
    refuse(all.root,
           "too few pictures to hold some out for the test; expected folders train and "
           "test, or more pictures");
  }
  return folders;
}

// Returns the folder of validation pictures beside train; an empty path if there is none.
fs::path find_validation(const fs::path& folder) {
  fs::path found;
  for (const std::string_view name : kValidationNames) {
    if (!is_folder(folder / name)) continue;
    if (!found.empty()) {
      refuse(folder, fmt::format("folders {} and {}; expected one folder of validation pictures",
                                 found.filename().string(), name));
    }
    found = folder / name;
  }
  return found;
}

// Logs the folders beside train that are not read: their names may be meant for a split.
void name_other_folders(const fs::path& folder) {
  std::vector<std::string> others;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    const bool is_known = name == "train" || name == "test" ||
                          std::ranges::find(kValidationNames, name) != kValidationNames.end();
    if (!is_known && !name.starts_with('.') && is_folder(at->path())) {
      others.push_back(printable(name));
    }
  }
  if (others.empty()) return;
  std::ranges::sort(others);
  log(LogLevel::kWarning,
      fmt::format("--data images: {}: not read beside train: {}; a folder of a split is test, {}",
                  printable(folder.string()), fmt::join(others, ", "),
                  fmt::join(kValidationNames, " or ")));
}

}  // namespace

std::string printable(std::string_view name) {
  std::string text(name);
  for (char& letter : text) {
    if (static_cast<unsigned char>(letter) < ' ' || letter == 0x7F) letter = '?';
  }
  return text;
}

ImageFolders find_images(const fs::path& folder) {
  if (!is_folder(folder)) {
    std::error_code ignored;
    refuse(folder, fs::exists(folder, ignored) ? "is a file; expected a folder" : "no such folder");
  }
  const fs::path train = folder / "train";
  // A folder train with pictures in it, and without folders, is the class of that name.
  if (!is_folder(train) || !has_folders(train)) return hold_out(scan(folder));
  name_other_folders(folder);
  const bool has_test = is_folder(folder / "test");
  const fs::path validation = find_validation(folder);
  if (!has_test && validation.empty()) return hold_out(scan(train));
  ImageFolders folders{scan(train), std::nullopt, scan(has_test ? folder / "test" : validation)};
  require_same_classes(folders.train, folders.test);
  if (has_test && !validation.empty()) {
    folders.validation = scan(validation);
    require_same_classes(folders.train, *folders.validation);
  }
  return folders;
}

}  // namespace syncopate
