// Decodes the rows of a JPEG file.
#include <csetjmp>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

// After cstdio, which it needs.
#include <jerror.h>
#include <jpeglib.h>

#include "models/base/errors.h"
#include "worker/input/image/picture_rows.h"

namespace syncopate {
namespace {

// A picture may ask for any number of passes over all its pixels. Encoders write about ten.
constexpr int kMaxScans = 100;
// Progressive pictures keep all coefficients, 6 bytes a pixel.
constexpr long kMaxMemoryBytes = 1L << 30;

// A libjpeg decompressor that reads from memory. libjpeg reports an error by a call that must not
// return; longjmp leaves it. Between setjmp and longjmp lie only frames of C and of lambdas without
// destructors.
class JpegDecompressor {
 public:
  JpegDecompressor(std::span<const std::byte> file, std::string_view name)
      : file_(file), name_(name) {
    decompress_.err = jpeg_std_error(&errors_);
    decompress_.client_data = this;
    errors_.error_exit = [](j_common_ptr common) { self(common).leave(); };
    errors_.emit_message = [](j_common_ptr common, int level) { self(common).warn(level); };
    guarded([this] { jpeg_create_decompress(&decompress_); });
    decompress_.mem->max_memory_to_use = kMaxMemoryBytes;
    progress_.progress_monitor = [](j_common_ptr common) { self(common).bound_scans(); };
    decompress_.progress = &progress_;
    source_.init_source = [](j_decompress_ptr) {};
    source_.term_source = [](j_decompress_ptr) {};
    source_.resync_to_restart = jpeg_resync_to_restart;
    source_.skip_input_data = [](j_decompress_ptr decompress, long num_bytes) {
      self(decompress).skip(num_bytes);
    };
    source_.fill_input_buffer = [](j_decompress_ptr decompress) -> boolean {
      self(decompress).end_input();
      return TRUE;
    };
    source_.next_input_byte = reinterpret_cast<const JOCTET*>(file.data());
    source_.bytes_in_buffer = file.size();
    decompress_.src = &source_;
  }
  JpegDecompressor(const JpegDecompressor&) = delete;
  JpegDecompressor& operator=(const JpegDecompressor&) = delete;
  ~JpegDecompressor() { jpeg_destroy_decompress(&decompress_); }

  jpeg_decompress_struct& operator*() noexcept { return decompress_; }
  jpeg_decompress_struct* operator->() noexcept { return &decompress_; }

  // Runs `call`, which calls libjpeg. Throws FileError when libjpeg reports an error.
  template <typename Call>
  void guarded(const Call& call) {
    if (setjmp(jump_) != 0) throw_image_error(name_, offset(), message_);
    call();
  }

  // Throws FileError if the file ended before its end marker in a picture of several scans, where
  // nothing says whether the last scan was there. In other pictures missing pixels are an error
  // already.
  void check_scans() {
    if (input_ended_ && jpeg_has_multiple_scans(&decompress_) != FALSE) {
      throw_image_error(name_, file_.size(), "the file ends before its last scan");
    }
  }

 private:
  template <typename Pointer>
  static JpegDecompressor& self(Pointer common) {
    return *static_cast<JpegDecompressor*>(common->client_data);
  }

  std::uint64_t offset() const {
    return input_ended_ ? file_.size() : file_.size() - source_.bytes_in_buffer;
  }

  [[noreturn]] void leave() {
    if (input_ended_) {
      std::snprintf(message_, sizeof(message_), "the file ends before its last pixel");
    } else {
      errors_.format_message(reinterpret_cast<j_common_ptr>(&decompress_), message_);
    }
    std::longjmp(jump_, 1);
  }

  // A negative level is a warning: libjpeg would go on with pixels that it makes up.
  void warn(int level) {
    if (level >= 0) return;
    switch (errors_.msg_code) {
      case JWRN_EXTRANEOUS_DATA:  // bytes between segments, which many cameras write
      case JWRN_JFIF_MAJOR:
      case JWRN_ADOBE_XFORM:
      case JWRN_BOGUS_ICC:
      case JWRN_NOT_SEQUENTIAL:  // a wrong scan header, which phones of Samsung write; not used
        return;
      default:
        leave();
    }
  }

  void bound_scans() {
    if (decompress_.input_scan_number <= kMaxScans) return;
    std::snprintf(message_, sizeof(message_), "more than %d scans", kMaxScans);
    std::longjmp(jump_, 1);
  }

  void skip(long num_bytes) {
    if (num_bytes <= 0) return;
    if (static_cast<std::size_t>(num_bytes) > source_.bytes_in_buffer) {
      end_input();
      return;
    }
    source_.next_input_byte += num_bytes;
    source_.bytes_in_buffer -= num_bytes;
  }

  // Gives an end marker once: a complete picture may lack it.
  void end_input() {
    static constexpr JOCTET kEndOfImage[] = {0xFF, JPEG_EOI};
    if (input_ended_) leave();
    input_ended_ = true;
    source_.next_input_byte = kEndOfImage;
    source_.bytes_in_buffer = sizeof(kEndOfImage);
  }

  std::span<const std::byte> file_;
  std::string_view name_;
  jpeg_decompress_struct decompress_ = {};
  jpeg_error_mgr errors_ = {};
  jpeg_source_mgr source_ = {};
  jpeg_progress_mgr progress_ = {};
  std::jmp_buf jump_ = {};
  char message_[JMSG_LENGTH_MAX] = {};
  bool input_ended_ = false;
};

// Converts a row of CMYK in place to 3 channels or 1. With Adobe's marker, values are inverted.
// Source: tensorflow/core/lib/jpeg/jpeg_mem.cc, which has the same formula.
void convert_cmyk_row(std::uint8_t* row, std::int64_t width, bool inverted, int channels) {
  const std::uint8_t flip = inverted ? 0 : 255;
  for (std::int64_t x = 0; x < width; ++x) {
    const std::uint8_t* const in = row + 4 * x;
    const int key = in[3] ^ flip;
    const std::uint8_t rgb[3] = {static_cast<std::uint8_t>((in[0] ^ flip) * key / 255),
                                 static_cast<std::uint8_t>((in[1] ^ flip) * key / 255),
                                 static_cast<std::uint8_t>((in[2] ^ flip) * key / 255)};
    if (channels == 1) {
      row[x] = grey_of(rgb[0], rgb[1], rgb[2]);
    } else {
      std::memcpy(row + 3 * x, rgb, 3);
    }
  }
}

// Lets libjpeg skip the columns that the resizer does not read. Returns the first column of the
// rows that will be decoded. Chroma is interpolated between neighbours. One more column is decoded
// on each side, so that the other columns equal those that decoding the whole picture gives.
std::int64_t crop_columns(JpegDecompressor& jpeg, const Resizer& resizer) {
  const std::int64_t first = std::max<std::int64_t>(resizer.first_column() - 1, 0);
  const std::int64_t end = std::min<std::int64_t>(resizer.last_column() + 2, jpeg->output_width);
  if (first == 0 && end == jpeg->output_width) return 0;
  auto offset = static_cast<JDIMENSION>(first);
  auto width = static_cast<JDIMENSION>(end - first);
  jpeg.guarded([&] { jpeg_crop_scanline(&*jpeg, &offset, &width); });
  return offset;
}

}  // namespace

void decode_jpeg_rows(std::span<const std::byte> file, std::string_view name,
                      const ImageHeader& header, int channels, int reduction, Resizer& resizer) {
  JpegDecompressor jpeg(file, name);
  jpeg.guarded([&] { jpeg_read_header(&*jpeg, TRUE); });
  if (jpeg->image_width != header.width || jpeg->image_height != header.height) {
    throw_image_error(name, 0, "two sizes in one JPEG file");
  }
  const bool is_cmyk = jpeg->num_components == 4;
  jpeg->out_color_space = is_cmyk ? JCS_CMYK : (channels == 1 ? JCS_GRAYSCALE : JCS_RGB);
  jpeg->scale_num = 1;
  jpeg->scale_denom = reduction;
  jpeg->dct_method = JDCT_ISLOW;
  jpeg.guarded([&] { jpeg_start_decompress(&*jpeg); });
  jpeg.check_scans();

  const std::int64_t offset = crop_columns(jpeg, resizer);
  const std::int64_t first_column = resizer.first_column() - offset;
  const std::size_t row_bytes =
      static_cast<std::size_t>(jpeg->output_width) * jpeg->out_color_components;
  // The resizer reads the row before the latest one too.
  std::vector<std::uint8_t> rows(2 * row_bytes);
  const auto num_skipped = static_cast<JDIMENSION>(resizer.first_row());
  if (num_skipped > 0) jpeg.guarded([&] { jpeg_skip_scanlines(&*jpeg, num_skipped); });
  const bool has_all_columns =
      first_column == 0 && jpeg->output_width == resizer.last_column() - resizer.first_column() + 1;
  const bool in_place = resizer.is_copy() && has_all_columns && !is_cmyk;
  for (std::int64_t y = resizer.first_row(); y <= resizer.last_row(); ++y) {
    std::uint8_t* row = in_place ? resizer.copied_row(y) : rows.data() + (y % 2) * row_bytes;
    jpeg.guarded([&] { jpeg_read_scanlines(&*jpeg, &row, 1); });
    if (in_place) continue;
    if (is_cmyk) {
      convert_cmyk_row(row, jpeg->output_width, jpeg->saw_Adobe_marker != FALSE, channels);
    }
    resizer.add_row(row + first_column * channels);
  }
}

}  // namespace syncopate
