// The format of a shard's snapshot files: magic, length of the header, header, checksum up to here,
// values, slots, checksum of everything. SnapshotWriter writes and reads the files.
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

// The checksum of `bytes`, continued from the checksum of the bytes before them. It detects damage
// by a disk or a crash at the speed of reading memory; every change of a single word is detected.
// Not cryptographic.
std::uint64_t block_checksum(std::uint64_t before, std::span<const std::byte> bytes) noexcept;

// What a snapshot file is written from.
struct SnapshotContent {
  std::shared_ptr<const ServedSnapshot> snapshot;
  wire::DeclarationT declaration;
  std::vector<std::uint8_t> coordinator;
};

// What a snapshot file holds. `number` is of the file's name, which SnapshotWriter knows.
struct SnapshotFile {
  std::uint64_t number = 0;
  wire::DeclarationT declaration;
  ShardSnapshot state;
  std::vector<float> running_statistics;
  std::vector<WorkerClock> entries;
  std::vector<std::uint8_t> coordinator;  // on shard 0: the bytes of Coordinator::save()
};

// Writes a snapshot file of this shard without its commit(). nonce: of the job. Throws FileError.
void write_snapshot_file(ReplacingFile& file, const SnapshotContent& content, int shard,
                         const std::string& nonce);

// Throws FileError, which names the snapshot file, if it is missing, truncated or damaged.
SnapshotFile read_snapshot_file(const std::filesystem::path& path);
// Reads the header only; the values and slots of the file are not checked. Throws FileError.
std::unique_ptr<wire::SnapshotHeaderT> read_snapshot_header(const std::filesystem::path& path);

}  // namespace syncopate::ps
