// The header of a .npy file, in which NumPy stores one array. Used by NpyFile. Source:
// numpy.org/doc/stable/reference/generated/numpy.lib.format.html, format versions 1.0 to 3.0.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>

#include "models/base/errors.h"
#include "models/base/parse_number.h"
#include "worker/input/array/npy_file.h"

namespace syncopate {
namespace {

constexpr std::array<std::uint8_t, 6> kMagic = {0x93, 'N', 'U', 'M', 'P', 'Y'};
constexpr std::size_t kShortPrefix = 10;  // magic, version, u16 length of the text: version 1
constexpr std::size_t kLongPrefix = 12;   // magic, version, u32 length of the text: versions 2, 3
// NumPy refuses to parse longer texts, because Python's parser may crash on them; a shape of 32
// extents and a type of numbers need 800 bytes.
constexpr std::uint64_t kLongestText = kNpyStartBytes - kLongPrefix;
constexpr std::size_t kMostAxes = 32;  // as in NumPy

// Reads the text of a header, which is a literal of Python: a dict with strings, booleans and a
// tuple of whole numbers. Errors name the byte of the file.
class LiteralReader {
 public:
  LiteralReader(std::string_view text, std::size_t file_offset, const std::string& path)
      : text_(text), file_offset_(file_offset), path_(path) {}

  // Skips blanks; returns whether the next character is `c`, and takes it if so.
  bool take(char c) {
    skip_blanks();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  void expect(char c) {
    if (!take(c)) throw damaged(fmt::format("expected '{}'", c));
  }

  // Reads 'text' or "text". The strings of a header have no escapes.
  std::string_view string() {
    skip_blanks();
    const char quote = at_ < text_.size() ? text_[at_] : '\0';
    if (quote != '\'' && quote != '"') throw damaged("expected a string");
    const std::size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) throw damaged("a string without an end");
    const std::string_view inside = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return inside;
  }

  bool boolean() {
    skip_blanks();
    for (const bool value : {false, true}) {
      const std::string_view word = value ? "True" : "False";
      if (text_.substr(at_).starts_with(word)) {
        at_ += word.size();
        return value;
      }
    }
    throw damaged("expected True or False");
  }

  Shape tuple() {
    Shape shape;
    expect('(');
    while (!take(')')) {
      skip_blanks();
      std::int64_t extent = 0;
      const char* const begin = text_.data() + at_;
      const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), extent);
      if (error != std::errc() || extent < 0) throw damaged("expected a whole number");
      at_ += static_cast<std::size_t>(end - begin);
      take('L');  // NumPy on Python 2 wrote long numbers so
      shape.push_back(extent);
      if (shape.size() > kMostAxes) throw damaged("more than 32 axes");
      if (!take(',')) {
        expect(')');
        // (3) is a number in Python, and (3,) a tuple.
        if (shape.size() == 1) throw damaged("expected a comma in the tuple of one number");
        break;
      }
    }
    return shape;
  }

  bool next_is(char c) {
    skip_blanks();
    return at_ < text_.size() && text_[at_] == c;
  }

  void expect_end() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    if (text_.substr(at_) != "\n") throw damaged("expected blanks and a line feed at the end");
  }

  FileError damaged(std::string_view reason) const {
    return FileError(fmt::format("{}: damaged header of a .npy file at byte {}: {}; save it again",
                                 path_, file_offset_ + at_, reason));
  }

 private:
  void skip_blanks() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }

  std::string_view text_;
  std::size_t file_offset_;
  const std::string& path_;
  std::size_t at_ = 0;
};

bool is_npy(std::span<const std::uint8_t> start) noexcept {
  return start.size() >= kMagic.size() && std::equal(kMagic.begin(), kMagic.end(), start.begin());
}

FileError no_npy_file(std::span<const std::uint8_t> start, const std::string& path) {
  const auto begins_with = [&](std::string_view magic) {
    return start.size() >= magic.size() &&
           std::equal(magic.begin(), magic.end(), start.begin(), [](char c, std::uint8_t byte) {
             return static_cast<std::uint8_t>(c) == byte;
           });
  };
  const auto first = start.first(std::min<std::size_t>(start.size(), 6));
  std::string found = start.empty()
                          ? "is empty"
                          : fmt::format("starts with the bytes {:02x}", fmt::join(first, " "));
  if (begins_with("PK"))
    found = "is a ZIP file, such as .npz; save each of its arrays with np.save";
  if (begins_with("\x89HDF")) found = "is an HDF5 file";
  if (begins_with("\x80")) found = "is a pickle";
  return FileError(
      fmt::format("{}: no .npy file at byte 0: it {}; expected an array as np.save "
                  "writes it",
                  path, found));
}

// Sets the type of an element from the text of 'descr', such as "<f4". Throws FileError unless it
// is a little-endian number.
void parse_type(std::string_view descr, const std::string& path, NpyHeader& header) {
  const bool has_order =
      !descr.empty() && std::string_view("<>|=").find(descr[0]) != std::string_view::npos;
  const char order = has_order ? descr[0] : '=';
  const std::string_view type = descr.substr(has_order ? 1 : 0);
  const bool has_kind =
      type.size() >= 2 && std::string_view("biufc").find(type[0]) != std::string_view::npos;
  const auto size = has_kind ? parse_number<std::size_t>(type.substr(1)).value_or(0) : 0;
  if (size == 0 || size > 32 || type[1] == '0') {
    throw FileError(fmt::format(
        "{}: its elements are of type '{}' ({}); expected numbers; {}", path, descr,
        type.starts_with("O") ? "Python objects" : "no numbers",
        type.starts_with("U") || type.starts_with("S")
            ? "number the words: " + numpy_conversion(path, "np.unique(a, return_inverse=True)[1]")
            : "save the array again with NumPy as a.astype('float32')"));
  }
  header.type = type;
  header.item_bytes = size;
  if (order == '>' && size > 1) {
    throw FileError(fmt::format("{}: its numbers are big-endian ('{}'); convert it: {}", path,
                                descr,
                                numpy_conversion(path, "a.astype(a.dtype.newbyteorder('<'))")));
  }
}

}  // namespace

std::string numpy_name(const std::string& type) {
  std::string_view kind = "number";
  switch (type.empty() ? '\0' : type[0]) {
    case 'b':
      return "bool";
    case 'i':
      kind = "int";
      break;
    case 'u':
      kind = "uint";
      break;
    case 'f':
      kind = "float";
      break;
    case 'c':
      kind = "complex";
      break;
    default:
      break;
  }
  std::size_t size = 0;
  std::from_chars(type.data() + 1, type.data() + type.size(), size);
  return fmt::format("{}{}", kind, 8 * size);
}

std::string numpy_conversion(const std::string& path, const std::string& expression) {
  return fmt::format("python3 -c \"import numpy as np; f = '{}'; a = np.load(f); np.save(f, {})\"",
                     path, expression);
}

NpyHeader parse_npy_header(std::span<const std::uint8_t> start, const std::string& path) {
  if (!is_npy(start)) throw no_npy_file(start, path);
  const auto cut_short = [&](std::uint64_t expected) {
    return FileError(fmt::format("{}: cut short at byte {}: its header has {} bytes; save it again",
                                 path, start.size(), expected));
  };
  if (start.size() < kLongPrefix) throw cut_short(kLongPrefix);
  if (start[6] < 1 || start[6] > 3 || start[7] != 0) {
    throw FileError(fmt::format("{}: format version {}.{} at byte 6; expected 1.0, 2.0 or 3.0",
                                path, start[6], start[7]));
  }
  NpyHeader header;
  const bool is_long = start[6] > 1;
  const std::size_t text_offset = is_long ? kLongPrefix : kShortPrefix;
  header.data_offset = text_offset + (start[8] | std::uint64_t{start[9]} << 8);
  if (is_long) {
    header.data_offset += std::uint64_t{start[10]} << 16 | std::uint64_t{start[11]} << 24;
  }
  if (header.data_offset - text_offset > kLongestText) {
    throw FileError(fmt::format("{}: a header of {} bytes at byte 8; expected at most {}", path,
                                header.data_offset - text_offset, kLongestText));
  }
  if (start.size() < header.data_offset) throw cut_short(header.data_offset);

  const std::span<const std::uint8_t> text =
      start.subspan(text_offset, static_cast<std::size_t>(header.data_offset) - text_offset);
  LiteralReader reader({reinterpret_cast<const char*>(text.data()), text.size()}, text_offset,
                       path);
  bool is_fortran = false;
  std::array<bool, 3> seen{};
  reader.expect('{');
  while (!reader.take('}')) {
    const std::string_view key = reader.string();
    constexpr std::array<std::string_view, 3> kKeys = {"descr", "fortran_order", "shape"};
    const auto* const known = std::find(kKeys.begin(), kKeys.end(), key);
    const auto which = static_cast<std::size_t>(known - kKeys.begin());
    if (known == kKeys.end() || seen.at(which)) {
      throw reader.damaged("expected the keys descr, fortran_order and shape, each once");
    }
    seen.at(which) = true;
    reader.expect(':');
    if (key == "descr") {
      if (reader.next_is('[')) {
        throw FileError(path +
                        ": a structured array, with several fields per element; expected "
                        "numbers; save one field of it");
      }
      parse_type(reader.string(), path, header);
    } else if (key == "shape") {
      header.shape = reader.tuple();
    } else {
      is_fortran = reader.boolean();
    }
    if (!reader.take(',')) {
      reader.expect('}');
      break;
    }
  }
  reader.expect_end();
  if (seen != std::array<bool, 3>{true, true, true}) {
    throw reader.damaged("expected the keys descr, fortran_order and shape, each once");
  }
  if (is_fortran && header.shape.size() > 1) {
    throw FileError(fmt::format("{}: its array is in Fortran order; convert it: {}", path,
                                numpy_conversion(path, "np.ascontiguousarray(a)")));
  }
  return header;
}

std::uint64_t check_npy_size(const NpyHeader& header, std::uint64_t file_bytes,
                             const std::string& path) {
  std::uint64_t bytes = header.item_bytes;
  std::uint64_t total = 0;
  bool too_large = false;
  const bool is_empty =
      std::find(header.shape.begin(), header.shape.end(), 0) != header.shape.end();
  for (const std::int64_t extent : header.shape) {
    if (is_empty) continue;
    too_large =
        too_large || __builtin_mul_overflow(bytes, static_cast<std::uint64_t>(extent), &bytes);
  }
  if (is_empty) bytes = 0;
  too_large = too_large || __builtin_add_overflow(bytes, header.data_offset, &total);
  if (too_large || file_bytes < total) {
    throw FileError(fmt::format(
        "{}: cut short at byte {}: its header announces {} of {}, {} bytes in all; save it again",
        path, file_bytes, to_string(header.shape), numpy_name(header.type),
        too_large ? "more than 2^64" : std::to_string(total)));
  }
  if (file_bytes > total) {
    throw FileError(
        fmt::format("{}: goes on after byte {}, where its array {} of {} ends; expected "
                    "one array; save it again",
                    path, total, to_string(header.shape), numpy_name(header.type)));
  }
  return bytes;
}

}  // namespace syncopate
