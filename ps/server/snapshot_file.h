// Reads and writes a shard's snapshot file. A file has these parts in order: a magic number, the
// length of the header, the header, a checksum of the parts so far, the values, the slots, and a
// checksum of all parts before it. SnapshotWriter decides when files are written and read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "models/base/replacing_file.h"
#include "ps/server/served_variables.h"

namespace syncopate::ps {

// Returns the checksum of `bytes` and all bytes before them; `before` is the checksum of the bytes
// before. The checksum detects damage by a disk or a crash, and every change of a single word. It
// is as fast as reading memory, and not cryptographic.
std::uint64_t block_checksum(std::uint64_t before, std::span<const std::byte> bytes) noexcept;

// The content of a snapshot file to write.
struct SnapshotContent {
  std::shared_ptr<const ServedSnapshot> snapshot;
  wire::DeclarationT declaration;
  std::vector<std::uint8_t> coordinator;
};

// The content of a snapshot file that was read.
struct SnapshotFile {
  std::uint64_t number = 0;
  wire::DeclarationT declaration;
  ShardSnapshot state;
  std::vector<float> running_statistics;
  std::vector<WorkerClock> entries;
  std::vector<std::uint8_t> coordinator;  // on shard 0: the bytes of Coordinator::save()
};

// Writes a snapshot file of this shard; the caller calls file.commit(). `nonce` identifies the job.
// Throws FileError.
void write_snapshot_file(ReplacingFile& file, const SnapshotContent& content, int shard,
                         const std::string& nonce);

// Reads and checks a snapshot file. Throws FileError, which names the file, if it is missing,
// truncated or damaged.
SnapshotFile read_snapshot_file(const std::filesystem::path& path);
// Reads only the header of a snapshot file. Does not check values and slots. Throws FileError.
std::unique_ptr<wire::SnapshotHeaderT> read_snapshot_header(const std::filesystem::path& path);

}  // namespace syncopate::ps
