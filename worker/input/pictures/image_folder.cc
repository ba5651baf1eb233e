#include "worker/input/pictures/image_folder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <span>
#include <string_view>

#include "models/base/errors.h"
#include "models/base/log.h"
#include "models/base/lower_case.h"
#include "models/base/random.h"

namespace syncopate {
namespace {

namespace fs = std::filesystem;

constexpr std::uint32_t kOneIn = 10;
// The names that data sets give to the folders of splits, in any case, also with "_set" behind
// them, or as one word of several.
constexpr std::array<std::string_view, 3> kTrainNames = {"train", "training", "tr"};
constexpr std::array<std::string_view, 4> kTestNames = {"test", "testing", "te", "ts"};
constexpr std::array<std::string_view, 4> kValidationNames = {"val", "valid", "validation", "eval"};
// Folders that archivers, file servers and desktops make beside pictures.
constexpr std::array<std::string_view, 9> kSystemFolders = {
    "__MACOSX",  "@eaDir",    "@tmp",         "@Recycle",
    "#recycle",  "#snapshot", "$RECYCLE.BIN", "System Volume Information",
    "lost+found"};

bool is_system_folder(std::string_view name) {
  return std::ranges::find(kSystemFolders, name) != kSystemFolders.end();
}

// What the extension of a file name says.
enum class Extension : std::uint8_t { kPicture, kUnsupported, kOther };

Extension extension_of(const std::string& name) {
  constexpr std::array<std::string_view, 5> kPictures = {".jpg", ".jpeg", ".jpe", ".jfif", ".png"};
  constexpr std::array<std::string_view, 8> kUnsupported = {".gif",  ".webp", ".bmp",  ".tif",
                                                            ".tiff", ".avif", ".heic", ".heif"};
  const std::string extension = lower_case(fs::path(name).extension().string());
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

// Returns the entries of a folder that are neither hidden nor a system's folders, in the byte order
// of their names.
std::vector<Entry> entries_of(const fs::path& folder) {
  std::error_code error;
  fs::directory_iterator iterator(folder, error);
  if (error) refuse(folder, error.message());
  std::vector<Entry> entries;
  for (; iterator != fs::directory_iterator(); iterator.increment(error)) {
    if (error) refuse(folder, error.message());
    Entry entry{iterator->path().filename().string()};
    if (entry.name.starts_with('.') || is_system_folder(entry.name)) continue;
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

// What a folder has that is not read.
struct LeftOut {
  std::int64_t num_files = 0;
  std::vector<std::string> folders;
};

// Adds the hidden folders and the system's in a folder. prefix: its path inside the data set.
void add_left_out_folders(const fs::path& path, const std::string& prefix, LeftOut& left_out) {
  std::error_code error;
  for (fs::directory_iterator at(path, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    if ((name.starts_with('.') || is_system_folder(name)) && is_folder(at->path())) {
      left_out.folders.push_back(printable(prefix + name));
    }
  }
}

// Appends the pictures of one class.
void add_class(const std::string& name, ImageFolder& folder, LeftOut& left_out) {
  const fs::path path = folder.root / name;
  const auto label = static_cast<std::int32_t>(folder.classes.size());
  const std::size_t before = folder.files.size();
  add_left_out_folders(path, name + "/", left_out);
  for (const Entry& entry : entries_of(path)) {
    if (S_ISDIR(entry.status.st_mode)) {
      refuse(path / entry.name,
             fmt::format("a folder inside the folder of a class; put its pictures into the folder "
                         "of the class, or, if {} is a split, name it train, test or val",
                         printable(name)));
    }
    const Extension extension = extension_of(entry.name);
    if (extension == Extension::kUnsupported) {
      refuse(path / entry.name, "only JPEG and PNG are supported; convert the file or remove it");
    }
    if (extension == Extension::kOther || !S_ISREG(entry.status.st_mode)) {
      ++left_out.num_files;
      continue;
    }
    const timespec& modified = entry.status.st_mtim;
    folder.files.push_back({name + "/" + entry.name, label, entry.status.st_size,
                            modified.tv_sec * 1'000'000'000 + modified.tv_nsec});
  }
  if (folder.files.size() == before) {
    refuse(path,
           "the folder of a class has no pictures (.jpg, .jpeg, .png); put some there, or remove "
           "the folder");
  }
  folder.classes.push_back(name);
}

// Returns the folder that holds the folders of classes or splits, if a folder has nothing but one
// folder with folders; else the folder itself.
fs::path behind_single_folders(fs::path folder) {
  for (;;) {
    const std::vector<Entry> entries = entries_of(folder);
    const auto is_directory = [](const Entry& each) { return S_ISDIR(each.status.st_mode); };
    const auto first = std::ranges::find_if(entries, is_directory);
    if (std::ranges::count_if(entries, is_directory) != 1) return folder;
    const std::vector<Entry> inner = entries_of(folder / first->name);
    const bool has_pictures = std::ranges::any_of(
        inner, [](const Entry& each) { return extension_of(each.name) == Extension::kPicture; });
    if (has_pictures || std::ranges::none_of(inner, is_directory)) return folder;
    folder /= first->name;
  }
}

// is_split: whether the folder is one split of a data set.
ImageFolder scan(const fs::path& root, bool is_split) {
  ImageFolder folder{root, {}, {}};
  LeftOut left_out;
  bool has_pictures = false;
  const std::vector<Entry> entries = entries_of(root);
  if (const fs::path inner = behind_single_folders(root); inner != root) {
    std::string emptied;
    for (fs::path each = inner; each != root; each = each.parent_path()) {
      emptied += fmt::format(" '{}'", printable(each.string()));
    }
    refuse(root,
           fmt::format(
               "its one folder has folders of its own; expected a folder per class; {}",
               is_split ? fmt::format("move them up: mv '{}'/* '{}'/ && rmdir{}",
                                      printable(inner.string()), printable(root.string()), emptied)
                        : "give --data images:" + printable(inner.string())));
  }
  add_left_out_folders(root, "", left_out);
  for (const Entry& entry : entries) {
    if (S_ISDIR(entry.status.st_mode)) {
      add_class(entry.name, folder, left_out);
    } else if (extension_of(entry.name) == Extension::kPicture) {
      has_pictures = true;
    }
  }
  if (folder.classes.size() < 2) {
    refuse(root,
           has_pictures ? fmt::format("pictures without a folder per class; move each picture into "
                                      "a folder with the name of its class{}",
                                      is_split ? ", or, if they have no classes, move this folder "
                                                 "elsewhere"
                                               : "")
           : folder.classes.empty() ? "no folders with pictures; expected one per class"
                                    : "one class; expected a folder for each of several classes");
  }
  if (left_out.num_files > 0) {
    log(LogLevel::kWarning, fmt::format("--data images: {}: left out {} file{} without the "
                                        "extension of a picture",
                                        printable(root.string()), left_out.num_files,
                                        left_out.num_files == 1 ? "" : "s"));
  }
  if (!left_out.folders.empty()) {
    log(LogLevel::kInfo, fmt::format("--data images: {}: left out {} hidden or system folder{}, "
                                     "the first is {}",
                                     printable(root.string()), left_out.folders.size(),
                                     left_out.folders.size() == 1 ? "" : "s",
                                     *std::ranges::min_element(left_out.folders)));
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

// Whether a folder's name is one of a split's, alone or with "set".
bool names_split(std::string_view name, std::span<const std::string_view> names) {
  std::string lower = lower_case(name);
  if (lower.ends_with("set") && lower.size() > 4) {
    lower.resize(lower.size() - 3);
    if (std::string_view("_- ").find(lower.back()) != std::string_view::npos) lower.pop_back();
  }
  return std::ranges::find(names, lower) != names.end();
}

// Whether the first word of a folder's name that is a split's is one of this split: "seg_train".
bool has_word_of_split(std::string_view name, std::span<const std::string_view> names) {
  for (const std::string& word : words_of(name)) {
    if (names_split(word, names)) return true;
    if (names_split(word, kTrainNames) || names_split(word, kTestNames) ||
        names_split(word, kValidationNames)) {
      return false;
    }
  }
  return false;
}

// Whether an entry is the folder of a split. by_word: it has folders, and a name with such a word.
bool is_split_folder(const fs::path& folder, const Entry& entry,
                     std::span<const std::string_view> names, bool by_word) {
  if (!S_ISDIR(entry.status.st_mode)) return false;
  return by_word ? has_word_of_split(entry.name, names) && has_folders(folder / entry.name)
                 : names_split(entry.name, names);
}

// Returns the folder of a split; an empty path if there is none. what: of pictures, "training".
fs::path find_split(const fs::path& folder, std::span<const std::string_view> names, bool by_word,
                    std::string_view what) {
  fs::path found;
  for (const Entry& entry : entries_of(folder)) {
    if (!is_split_folder(folder, entry, names, by_word)) continue;
    if (!found.empty()) {
      refuse(folder, fmt::format("folders {} and {}; expected one folder of {} pictures",
                                 found.filename().string(), entry.name, what));
    }
    found = folder / entry.name;
  }
  return found;
}

// Logs the folders beside the one of training pictures that are not read: their names may be meant
// for a split. train: the name of that folder. splits: the folders that are read.
void name_other_folders(const fs::path& folder, const std::string& train,
                        std::span<const fs::path> splits) {
  std::vector<std::string> others;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    const bool is_read = std::ranges::any_of(
        splits, [&](const fs::path& split) { return split.filename() == name; });
    if (!is_read && !is_system_folder(name) && !name.starts_with('.') && is_folder(at->path())) {
      others.push_back(printable(name));
    }
  }
  if (others.empty()) return;
  std::ranges::sort(others);
  log(LogLevel::kWarning,
      fmt::format("--data images: {}: not read beside {}: {}; a folder of a split is {}, or {}",
                  printable(folder.string()), printable(train), fmt::join(others, ", "),
                  fmt::join(kTestNames, " or "), fmt::join(kValidationNames, " or ")));
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
  // A folder train with pictures in it, and without folders, is the class of that name.
  const auto has_train = [&](bool by_word) {
    return std::ranges::any_of(entries_of(folder), [&](const Entry& entry) {
      return is_split_folder(folder, entry, kTrainNames, by_word) &&
             has_folders(folder / entry.name);
    });
  };
  const bool by_word = !has_train(false);
  if (by_word && !has_train(true)) return hold_out(scan(folder, false));
  const fs::path train = find_split(folder, kTrainNames, by_word, "training");
  const fs::path test = find_split(folder, kTestNames, by_word, "test");
  const fs::path validation = find_split(folder, kValidationNames, by_word, "validation");
  name_other_folders(folder, train.filename().string(), std::array{train, test, validation});
  if (test.empty() && validation.empty()) return hold_out(scan(train, true));
  ImageFolders folders{scan(train, true), std::nullopt,
                       scan(test.empty() ? validation : test, true)};
  require_same_classes(folders.train, folders.test);
  if (!test.empty() && !validation.empty()) {
    folders.validation = scan(validation, true);
    require_same_classes(folders.train, *folders.validation);
  }
  return folders;
}

}  // namespace syncopate
