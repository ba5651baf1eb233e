#include "worker/input/image/png_writer.h"

#include <fmt/format.h>
#include <spng.h>

#include <array>
#include <cstdlib>
#include <memory>

#include "models/base/errors.h"
#include "models/base/replacing_file.h"

namespace syncopate {
namespace {

// Background, then colours that people with a colour weakness tell apart, too. Source: Okabe and
// Ito 2008, "Color universal design". Further classes repeat them.
constexpr std::array<std::array<std::uint8_t, 3>, 9> kColours = {{{0, 0, 0},
                                                                  {230, 159, 0},
                                                                  {86, 180, 233},
                                                                  {0, 158, 115},
                                                                  {240, 228, 66},
                                                                  {0, 114, 178},
                                                                  {213, 94, 0},
                                                                  {204, 121, 167},
                                                                  {255, 255, 255}}};

spng_plte palette() {
  spng_plte made{};
  made.n_entries = 256;
  for (std::size_t i = 0; i < 256; ++i) {
    const auto& colour = kColours[i == 0 ? 0 : 1 + (i - 1) % (kColours.size() - 1)];
    made.entries[i] = {colour[0], colour[1], colour[2], 255};
  }
  return made;
}

void require(int code) {
  if (code != 0) throw InternalError(fmt::format("libspng: {}", spng_strerror(code)));
}

std::vector<std::byte> encode(std::span<const std::uint8_t> pixels, std::int64_t width,
                              std::int64_t height, spng_color_type type) {
  check(static_cast<std::int64_t>(pixels.size()) == width * height, "a value for each pixel");
  const std::unique_ptr<spng_ctx, decltype(&spng_ctx_free)> png(spng_ctx_new(SPNG_CTX_ENCODER),
                                                                spng_ctx_free);
  check(png != nullptr, "libspng gives a context");
  require(spng_set_option(png.get(), SPNG_ENCODE_TO_BUFFER, 1));
  spng_ihdr header{};
  header.width = static_cast<std::uint32_t>(width);
  header.height = static_cast<std::uint32_t>(height);
  header.bit_depth = 8;
  header.color_type = static_cast<std::uint8_t>(type);
  require(spng_set_ihdr(png.get(), &header));
  if (type == SPNG_COLOR_TYPE_INDEXED) {
    spng_plte colours = palette();
    require(spng_set_plte(png.get(), &colours));
  }
  require(spng_encode_image(png.get(), pixels.data(), pixels.size(), SPNG_FMT_PNG,
                            SPNG_ENCODE_FINALIZE));
  std::size_t bytes = 0;
  int code = 0;
  const std::unique_ptr<void, decltype(&std::free)> encoded(
      spng_get_png_buffer(png.get(), &bytes, &code), std::free);
  require(code);
  const auto* const begin = static_cast<const std::byte*>(encoded.get());
  return {begin, begin + bytes};
}

}  // namespace

void write_label_png(const std::filesystem::path& path, std::span<const std::uint8_t> labels,
                     std::int64_t width, std::int64_t height) {
  ReplacingFile file(path);
  file.write(encode(labels, width, height, SPNG_COLOR_TYPE_INDEXED));
  file.commit();
}

std::vector<std::byte> encode_grey_png(std::span<const std::uint8_t> pixels, std::int64_t width,
                                       std::int64_t height) {
  return encode(pixels, width, height, SPNG_COLOR_TYPE_GRAYSCALE);
}

}  // namespace syncopate
