// A file of a data set's decoded samples on a machine's own disk, shared by all processes of the
// machine and kept between runs. Samples are written in any order, by any process, as they are
// decoded.
//
// The file has one slot per sample: a checksum and the sample's bytes. The checksum covers the
// sample's key too (its file's name, size and time), so an empty slot, a slot that was being
// written when its process was killed, a damaged slot and a slot of another file are all alike: the
// sample is decoded and written again. No state has to be completed or repaired.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>

#include "models/base/file_descriptor.h"

namespace syncopate {

// Thread-safe. Slots are read and written by pread and pwrite, not mapped: all processes share the
// pages as they would with a mapping. A full disk, or a file that another process cuts short, is an
// error that can be handled; with a mapping either would end the process.
class SampleCache {
 public:
  // Opens the file, creating it and its folder when they are missing. Uses at most limit_bytes of
  // the disk; a negative limit means half of the free disk; the file itself counts as free. Returns
  // null and logs one warning when the file cannot be used, also when it belongs to another user.
  static std::unique_ptr<SampleCache> open(const std::filesystem::path& path,
                                           std::int64_t sample_bytes, std::int64_t limit_bytes);

  // Fills `sample` and returns true if the slot holds the sample with this key. Otherwise the
  // contents of `sample` are undefined.
  bool read(std::int64_t index, std::uint64_t key, std::span<std::byte> sample) const;
  // Writes a sample. Logs one warning when that fails, for example because the disk is full, and
  // writes no more.
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
