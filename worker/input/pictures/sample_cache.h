// A file of a data set's decoded samples on the disk of a machine. All processes of the machine
// share the file, and it is kept between runs. Any process writes samples in any order, as they are
// decoded.
//
// The file has one slot per sample, with a checksum and the sample's bytes. The checksum also
// covers the sample's key, which is made of the name, size and time of the file that has the
// sample. The checksum therefore does not match if a slot is empty, damaged, has a sample of
// another file, or was being written when the writing process was killed. In all these cases the
// sample is decoded and written again, and nothing has to be repaired.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>

#include "models/base/file_descriptor.h"

namespace syncopate {

// Opens, reads and writes one cache file. Thread-safe. Slots are read and written by pread and
// pwrite, which share pages between processes as a mapping would. The file is not mapped, because a
// full disk, or another process that cuts the file short, would then end the process instead of
// causing an error that can be handled.
class SampleCache {
 public:
  // Opens the file; creates it and its folder if they are missing. limit_bytes: the most bytes that
  // the file may use; negative: half of the free disk space, which includes the space of the file.
  // Returns null and logs one warning if the file cannot be used, for example because it belongs to
  // another user.
  static std::unique_ptr<SampleCache> open(const std::filesystem::path& path,
                                           std::int64_t sample_bytes, std::int64_t limit_bytes);

  // If slot `index` has a sample with this key, copies it to `sample` and returns true. Otherwise
  // returns false, and the contents of `sample` are undefined.
  bool read(std::int64_t index, std::uint64_t key, std::span<std::byte> sample) const;
  // Writes a sample. If that fails, for example because the disk is full, logs one warning and
  // writes no more samples.
  void write(std::int64_t index, std::uint64_t key, std::span<const std::byte> sample);

 private:
  SampleCache(FileDescriptor file, std::filesystem::path path, std::int64_t sample_bytes,
              std::int64_t num_slots);

  FileDescriptor file_;
  std::filesystem::path path_;
  std::int64_t sample_bytes_;
  std::int64_t num_slots_;
  std::atomic<bool> is_writable_ = true;
};

}  // namespace syncopate
