// A file of copies of the variables, each with the figures of its moment: one process appends,
// and it, or another when that process is gone, reads them back. Used by kept_copies.cc.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "models/base/file_descriptor.h"
#include "strategies/strategy.h"
#include "worker/train/metrics.h"

namespace syncopate {

// One thread only. Locked while this process lives.
class CopiesFile {
 public:
  // A new one. Without a name it is gone with the process, however that ends. Throws FileError.
  static CopiesFile create(const std::filesystem::path& folder);
  static CopiesFile create_nameless(const std::filesystem::path& folder);
  // One whose process has ended; nothing while that lives, or when somebody else has taken it up.
  static std::optional<CopiesFile> take_over(const std::filesystem::path& path);
  // Those in the folder, whosever they are.
  static std::vector<std::filesystem::path> in_folder(const std::filesystem::path& folder);

  // test_loss, test_accuracy, samples and seconds of the moment are not kept. Throws FileError when
  // it cannot be written; then the file is as it was.
  void append(const EvalMetrics& moment, const Snapshot& copy);

  // What nobody is done with, in the order in which it was written. What a killed process left cut
  // short is not there.
  struct Entry {
    EvalMetrics moment;
    std::uint64_t offset = 0;  // of its record
    std::uint64_t values = 0;  // elements
    std::uint64_t state = 0;
  };
  const std::vector<Entry>& entries() const noexcept { return entries_; }
  // Throws FileError.
  Snapshot read(const Entry& entry) const;
  // Whoever reads the file from now on does not see it. The last one takes the file with it.
  void done(const Entry& entry);
  // All of it, with the file.
  void remove() noexcept;

  const std::filesystem::path& path() const noexcept { return path_; }  // empty: it has no name

 private:
  CopiesFile(FileDescriptor file, std::filesystem::path path, std::filesystem::path folder);
  void read_entries();
  void write(std::span<const std::byte> bytes);
  [[noreturn]] void fail(const char* action) const;

  FileDescriptor file_;
  std::filesystem::path path_;
  std::filesystem::path folder_;
  std::uint64_t size_ = 0;  // of whole records, bytes
  std::vector<Entry> entries_;
};

}  // namespace syncopate
