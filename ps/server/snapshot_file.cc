#include "ps/server/snapshot_file.h"

#include <array>
#include <bit>
#include <cstring>
#include <fstream>
#include <utility>

#include "models/base/errors.h"

namespace syncopate::ps {
namespace {

constexpr std::uint64_t kChecksumPrime = 0x9E3779B185EBCA87;

std::uint64_t mix(std::uint64_t lane, std::uint64_t word) noexcept {
  return std::rotl((lane ^ word) * kChecksumPrime, 31);
}

constexpr std::uint64_t kSnapshotMagic = 0x34544f4853504e53;  // "SNPSHOT4"
constexpr std::uint64_t kExtraWords = 4;
constexpr std::uint64_t kLongestHeader = std::uint64_t{1} << 32;
constexpr int kMostSlots = 1000;

std::span<const std::byte> bytes_of(const std::uint64_t& word) {
  return std::as_bytes(std::span(&word, 1));
}

wire::SnapshotEntry entry_to_wire(const WorkerClock& entry) {
  return {entry.worker, entry.incarnation, entry.sequence};
}

std::vector<WorkerClock> entries_from_wire(const std::vector<wire::SnapshotEntry>& entries) {
  std::vector<WorkerClock> result;
  for (const wire::SnapshotEntry& entry : entries) {
    result.push_back({entry.worker(), entry.incarnation(), entry.sequence()});
  }
  return result;
}

wire::SnapshotHeaderT header_of(const SnapshotContent& content, int shard,
                                const std::string& nonce) {
  const ServedSnapshot& copy = *content.snapshot;
  wire::SnapshotHeaderT header;
  header.snapshot = copy.number;
  header.shard = shard;
  header.declaration = std::make_unique<wire::DeclarationT>(content.declaration);
  for (const WorkerClock& entry : copy.entries) header.entries.push_back(entry_to_wire(entry));
  for (const ShardSnapshot::Variable& variable : copy.state.buckets) {
    auto bucket = std::make_unique<wire::SnapshotBucketT>();
    bucket->version = variable.version;
    for (const WorkerClock& entry : variable.workers)
      bucket->workers.push_back(entry_to_wire(entry));
    header.buckets.push_back(std::move(bucket));
  }
  header.running_statistics = copy.running_statistics;
  header.coordinator = content.coordinator;
  header.elements = copy.state.values.num_elements();
  header.slots = static_cast<int>(copy.state.slots.size());
  header.nonce = nonce;
  return header;
}

class SnapshotReader {
 public:
  explicit SnapshotReader(const std::filesystem::path& path)
      : path_(path), in_(path, std::ios::binary) {
    if (!in_) throw FileError("snapshot " + path.string() + " cannot be opened");
  }
  void read(std::span<std::byte> bytes) {
    in_.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    if (in_.gcount() != static_cast<std::streamsize>(bytes.size())) damaged("is cut short");
  }
  std::uint64_t read_word() {
    std::uint64_t word = 0;
    read(std::as_writable_bytes(std::span(&word, 1)));
    return word;
  }
  [[noreturn]] void damaged(const std::string& how) const {
    throw FileError("snapshot " + path_.string() + " " + how);
  }

  struct Header {
    std::uint64_t sum = 0;
    std::unique_ptr<wire::SnapshotHeaderT> fields;
  };
  // Reads a snapshot file's header and checks everything but the values and slots.
  Header read_header() {
    if (read_word() != kSnapshotMagic) damaged("is not a snapshot file of this program version");
    const std::uint64_t size = std::filesystem::file_size(path_);
    const std::uint64_t length = read_word();
    if (length > kLongestHeader || length > size) damaged("is damaged");
    std::vector<std::byte> bytes(length);
    read(bytes);
    Header header{.sum = block_checksum(kSnapshotMagic, bytes), .fields = nullptr};
    if (read_word() != header.sum) damaged("is damaged");
    const auto* const begin = reinterpret_cast<const std::uint8_t*>(bytes.data());
    flatbuffers::Verifier verifier(begin, bytes.size());
    if (!verifier.VerifyBuffer<wire::SnapshotHeader>(nullptr)) damaged("is damaged");
    header.fields.reset(flatbuffers::GetRoot<wire::SnapshotHeader>(begin)->UnPack());
    const wire::SnapshotHeaderT& fields = *header.fields;
    if (fields.declaration == nullptr || fields.elements < 0 || fields.slots < 0 ||
        static_cast<std::uint64_t>(fields.elements) > size || fields.slots > kMostSlots) {
      damaged("is damaged");
    }
    const std::uint64_t blocks = 1 + static_cast<std::uint64_t>(fields.slots);
    const std::uint64_t expected =
        kExtraWords * sizeof(std::uint64_t) + length +
        blocks * static_cast<std::uint64_t>(fields.elements) * sizeof(float);
    if (size != expected) damaged("is cut short");
    return header;
  }

 private:
  const std::filesystem::path& path_;
  std::ifstream in_;
};

}  // namespace

std::uint64_t block_checksum(std::uint64_t before, std::span<const std::byte> bytes) noexcept {
  // The checksum has four lanes of one word each, since a multiplication depends only on the
  // previous one of its lane. Byte by byte, one GB would take longer than the peer timeout.
  std::array<std::uint64_t, 4> lanes{before, before + 1, before + 2, before + 3};
  const std::size_t size = bytes.size();
  for (; bytes.size() >= sizeof lanes; bytes = bytes.subspan(sizeof lanes)) {
    std::array<std::uint64_t, 4> words;
    std::memcpy(words.data(), bytes.data(), sizeof words);
    for (std::size_t i = 0; i < lanes.size(); ++i) lanes[i] = mix(lanes[i], words[i]);
  }
  std::array<std::uint64_t, 4> rest{};
  if (!bytes.empty()) std::memcpy(rest.data(), bytes.data(), bytes.size());
  std::uint64_t sum = mix(before, size);
  for (std::size_t i = 0; i < lanes.size(); ++i) sum = mix(sum, mix(lanes[i], rest[i]));
  return sum;
}

void write_snapshot_file(ReplacingFile& file, const SnapshotContent& content, int shard,
                         const std::string& nonce) {
  flatbuffers::FlatBufferBuilder builder;
  const wire::SnapshotHeaderT header = header_of(content, shard, nonce);
  builder.Finish(wire::SnapshotHeader::Pack(builder, &header));
  const std::span<const std::byte> head =
      std::as_bytes(std::span(builder.GetBufferPointer(), builder.GetSize()));
  std::uint64_t sum = block_checksum(kSnapshotMagic, head);
  file.write(bytes_of(kSnapshotMagic));
  file.write(bytes_of(head.size()));
  file.write(head);
  file.write(bytes_of(sum));
  const auto write_block = [&](const Tensor& block) {
    file.write(block.bytes());
    sum = block_checksum(sum, block.bytes());
  };
  write_block(content.snapshot->state.values);
  for (const Tensor& slot : content.snapshot->state.slots) write_block(slot);
  file.write(bytes_of(sum));
}

SnapshotFile read_snapshot_file(const std::filesystem::path& path) {
  SnapshotReader reader(path);
  const SnapshotReader::Header head = reader.read_header();
  wire::SnapshotHeaderT* const header = head.fields.get();
  std::uint64_t sum = head.sum;
  SnapshotFile file{.number = header->snapshot};
  const auto read_block = [&] {
    Tensor block = make_host_tensor({header->elements}, DType::kF32);
    reader.read(block.bytes());
    sum = block_checksum(sum, block.bytes());
    return block;
  };
  file.state.values = read_block();
  for (int s = 0; s < header->slots; ++s) file.state.slots.push_back(read_block());
  if (reader.read_word() != sum) reader.damaged("is damaged");
  for (const auto& bucket : header->buckets) {
    file.state.buckets.push_back({bucket->version, entries_from_wire(bucket->workers)});
  }
  file.declaration = *header->declaration;
  file.entries = entries_from_wire(header->entries);
  file.running_statistics = std::move(header->running_statistics);
  file.coordinator = std::move(header->coordinator);
  return file;
}

std::unique_ptr<wire::SnapshotHeaderT> read_snapshot_header(const std::filesystem::path& path) {
  return SnapshotReader(path).read_header().fields;
}

}  // namespace syncopate::ps
