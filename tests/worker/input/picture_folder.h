// A folder of small pictures for one test.
#pragma once

#include <filesystem>
#include <fstream>
#include <span>
#include <string>

#include "tests/support/temporary_folder.h"
#include "tests/worker/input/image/encoded_samples.h"

namespace syncopate {

class PictureFolder {
 public:
  std::filesystem::path path() const { return folder_.path(); }
  std::string data_flag() const { return "images:" + path().string(); }

  void write(const std::string& name, const FileBytes& file) const {
    const std::filesystem::path target = path() / name;
    std::filesystem::create_directories(target.parent_path());
    std::ofstream(target, std::ios::binary)
        .write(reinterpret_cast<const char*>(file.data()),
               static_cast<std::streamsize>(file.size()));
  }
  void write_text(const std::string& name, const std::string& text) const {
    const auto bytes = std::as_bytes(std::span(text));
    write(name, FileBytes(bytes.begin(), bytes.end()));
  }
  // Writes train/ and test/ with two classes: `train` and two pictures, JPEG and PNG in turns.
  void write_splits(int train, int test = 2) const {
    for (int i = 0; i < train; ++i) write_picture("train", i);
    for (int i = 0; i < test; ++i) write_picture("test", i);
  }

 private:
  void write_picture(const std::string& split, int i) const {
    const Picture picture = make_picture(20 + i % 3, 16, 3, static_cast<unsigned>(i));
    const std::string name = split + "/" + (i % 2 == 0 ? "cat/" : "dog/") + std::to_string(i);
    if (i % 4 < 2) {
      write(name + ".JPG", make_jpeg(picture));
    } else {
      write(name + ".png", make_png(picture));
    }
  }

  TemporaryFolder folder_;
};

}  // namespace syncopate
