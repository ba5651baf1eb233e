// Writes small pictures of every form into a folder: the fuzzer's initial corpus.
#include <fstream>
#include <string>

#include "tests/worker/input/image/encoded_samples.h"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  using namespace syncopate;  // NOLINT
  const Picture picture = make_picture(37, 29);
  const Picture grey = make_picture(37, 29, 1);
  const FileBytes files[] = {
      make_jpeg(picture),
      make_jpeg(picture, {.horizontal_sampling = 1, .vertical_sampling = 1, .exif_orientation = 6}),
      make_jpeg(picture, {.vertical_sampling = 1, .progressive = true}),
      make_jpeg(picture, {.restart_interval = 1}),
      make_jpeg(grey),
      make_jpeg(make_picture(37, 29, 4)),
      make_png(picture),
      make_png(picture, {.bit_depth = 16, .interlaced = true, .exif_orientation = 3}),
      make_png(grey, {.palette = true}),
      make_png(make_picture(37, 29, 2)),
  };
  int number = 0;
  for (const FileBytes& file : files) {
    std::ofstream out(std::string(argv[1]) + "/picture" + std::to_string(number++),
                      std::ios::binary);
    out.write(reinterpret_cast<const char*>(file.data()),
              static_cast<std::streamsize>(file.size()));
    if (!out) return 1;
  }
  return 0;
}
