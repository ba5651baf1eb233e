#include "ps/server/order_record.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <span>
#include <utility>

#include "models/base/errors.h"
#include "models/base/file_lock.h"
#include "models/base/log.h"
#include "models/base/random.h"
#include "ps/coordinator/wire_conversion.h"
#include "ps/server/served_variables.h"

namespace syncopate::ps {
namespace {

static_assert(std::endian::native == std::endian::little, "files are written as memory is");

constexpr std::array<char, 8> kOrderMagic = {'S', 'Y', 'N', 'C', 'O', 'R', 'D', '\n'};
constexpr std::uint32_t kOrderFormat = 2;
constexpr std::size_t kBufferBytes = std::size_t{64} << 10;

// An order record's header. Buckets follow, as i64 begin and end, and then the declaration.
struct HeaderBytes {
  std::array<char, 8> magic = kOrderMagic;
  std::uint32_t format = kOrderFormat;
  std::uint32_t incarnation = 0;
  std::int32_t shard = 0;
  std::int32_t servers = 0;
  std::uint64_t fingerprint = 0;
  std::uint64_t num_buckets = 0;
  std::uint64_t declaration_bytes = 0;
  std::uint32_t checksum_behind = 0;  // of buckets and declaration
  std::uint32_t checksum = 0;         // of the fields before the checksum
};
static_assert(sizeof(HeaderBytes) == 56);

struct EntryBytes {
  std::uint16_t kind = 0;
  std::uint16_t lanes = 0;
  std::int32_t worker = 0;
  std::uint32_t incarnation = 0;
  std::int32_t bucket = 0;
  std::uint64_t sequence = 0;
  std::uint64_t version_read = 0;
  std::uint64_t version_after = 0;
  std::uint64_t staleness = 0;
  std::int64_t epoch = 0;
  std::int64_t begin = 0;
  std::int64_t end = 0;
  float learning_rate = 0.0F;
  std::uint32_t checksum = 0;  // of the fields before the checksum
};
static_assert(sizeof(EntryBytes) == 80);

std::uint32_t checksum_of(std::span<const std::byte> bytes) {
  const std::uint64_t hash = hash_name({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  return static_cast<std::uint32_t>(hash ^ (hash >> 32U));
}

// Computes the checksum of a struct. The checksum is the struct's last field.
template <typename Bytes>
std::uint32_t checksum_within(const Bytes& bytes) {
  return checksum_of(
      std::as_bytes(std::span(&bytes, 1)).first(sizeof(Bytes) - sizeof(std::uint32_t)));
}

void append_to(std::vector<std::byte>& buffer, std::span<const std::byte> bytes) {
  buffer.insert(buffer.end(), bytes.begin(), bytes.end());
}

std::vector<std::byte> header_bytes(const OrderHeader& header) {
  std::vector<std::byte> behind;
  append_to(behind, std::as_bytes(std::span(header.buckets)));
  append_to(behind, std::as_bytes(std::span(header.declaration)));
  HeaderBytes bytes{.incarnation = header.incarnation,
                    .shard = header.shard,
                    .servers = header.servers,
                    .fingerprint = header.fingerprint,
                    .num_buckets = header.buckets.size(),
                    .declaration_bytes = header.declaration.size(),
                    .checksum_behind = checksum_of(behind)};
  bytes.checksum = checksum_within(bytes);
  std::vector<std::byte> whole;
  append_to(whole, std::as_bytes(std::span(&bytes, 1)));
  append_to(whole, behind);
  return whole;
}

EntryBytes entry_bytes(const OrderEntry& entry) {
  EntryBytes bytes{.kind = static_cast<std::uint16_t>(entry.kind),
                   .lanes = static_cast<std::uint16_t>(entry.lanes),
                   .worker = entry.worker,
                   .incarnation = entry.incarnation,
                   .bucket = entry.bucket,
                   .sequence = entry.sequence,
                   .version_read = entry.version_read,
                   .version_after = entry.version_after,
                   .staleness = entry.staleness,
                   .epoch = entry.batch.epoch,
                   .begin = entry.batch.begin,
                   .end = entry.batch.end,
                   .learning_rate = entry.learning_rate};
  bytes.checksum = checksum_within(bytes);
  return bytes;
}

OrderEntry entry_of(const EntryBytes& bytes) {
  return {.kind = static_cast<OrderEntry::Kind>(bytes.kind),
          .worker = bytes.worker,
          .incarnation = bytes.incarnation,
          .bucket = bytes.bucket,
          .sequence = bytes.sequence,
          .version_read = bytes.version_read,
          .version_after = bytes.version_after,
          .staleness = bytes.staleness,
          .learning_rate = bytes.learning_rate,
          .lanes = bytes.lanes,
          .batch = {bytes.epoch, bytes.begin, bytes.end}};
}

bool is_sound(const EntryBytes& bytes, std::size_t num_buckets) {
  return bytes.checksum == checksum_within(bytes) &&
         bytes.kind >= static_cast<std::uint16_t>(OrderEntry::Kind::kWritten) &&
         bytes.kind <= static_cast<std::uint16_t>(OrderEntry::Kind::kInnerStep) &&
         bytes.bucket >= 0 && std::cmp_less(bytes.bucket, num_buckets);
}

// A Cursor takes bytes off the front of the content of a file.
class Cursor {
 public:
  Cursor(const std::string& path, std::span<const std::byte> bytes) : path_(path), left_(bytes) {}

  std::size_t left() const noexcept { return left_.size(); }

  std::span<const std::byte> take(std::uint64_t count) {
    if (count > left_.size()) damaged("ends within its header; the run may have ended at once");
    const std::span<const std::byte> taken = left_.first(count);
    left_ = left_.subspan(count);
    return taken;
  }
  template <typename Bytes>
  Bytes take_struct() {
    Bytes bytes;
    std::memcpy(&bytes, take(sizeof bytes).data(), sizeof bytes);
    return bytes;
  }

  [[noreturn]] void damaged(const std::string& what) const {
    throw FileError("order record " + path_ + ": " + what);
  }

 private:
  const std::string& path_;
  std::span<const std::byte> left_;
};

OrderHeader take_header(Cursor& cursor) {
  const auto bytes = cursor.take_struct<HeaderBytes>();
  if (bytes.magic != kOrderMagic)
    cursor.damaged("is not an order record; expected a file that --record wrote");
  if (bytes.format != kOrderFormat) {
    cursor.damaged(fmt::format("has format {}, expected {}; read it with the program that wrote it",
                               bytes.format, kOrderFormat));
  }
  if (bytes.checksum != checksum_within(bytes)) cursor.damaged("its header was changed");
  // The header's checksum is right, so its numbers are valid and their sum does not overflow.
  const std::span<const std::byte> behind =
      cursor.take(bytes.num_buckets * sizeof(Bucket) + bytes.declaration_bytes);
  if (bytes.checksum_behind != checksum_of(behind)) cursor.damaged("its header was changed");
  OrderHeader header{.shard = bytes.shard,
                     .servers = bytes.servers,
                     .incarnation = bytes.incarnation,
                     .fingerprint = bytes.fingerprint};
  header.buckets.resize(bytes.num_buckets);
  const std::size_t bucket_bytes = header.buckets.size() * sizeof(Bucket);
  std::memcpy(header.buckets.data(), behind.data(), bucket_bytes);
  header.declaration.assign(reinterpret_cast<const char*>(behind.data()) + bucket_bytes,
                            bytes.declaration_bytes);
  return header;
}

// Removes the records "first.2", "first.3", ... of an earlier job: a reader would take them for the
// continuation of the new job's first record. Leaves other files. Throws FileError.
void remove_later_records(const std::filesystem::path& first) {
  const std::string prefix = first.filename().string() + ".";
  const std::filesystem::path folder = first.has_parent_path() ? first.parent_path() : ".";
  std::error_code ignored;  // a folder that cannot be listed, or not to its end
  for (std::filesystem::directory_iterator entry(folder, ignored), end; entry != end;
       entry.increment(ignored)) {
    const std::string path = entry->path().string();
    const std::string name = entry->path().filename().string();
    if (!name.starts_with(prefix) || name.size() == prefix.size()) continue;
    if (name.find_first_not_of("0123456789", prefix.size()) != std::string::npos) continue;
    std::array<char, kOrderMagic.size()> magic{};
    std::ifstream(path, std::ios::binary).read(magic.data(), magic.size());
    if (magic == kOrderMagic && ::unlink(path.c_str()) != 0) {
      throw FileError(describe_errno("remove order record", path, errno));
    }
  }
}

std::vector<std::byte> read_whole(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw FileError(describe_errno("open order record", path, errno));
  std::string text(std::istreambuf_iterator<char>(file), {});
  if (file.bad()) throw FileError(describe_errno("read order record", path, errno));
  const std::span<const std::byte> bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

OrderHeader order_header_of(int shard, int servers, std::uint32_t incarnation,
                            const ServedVariables& served) {
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(wire::Declaration::Pack(builder, &served.declaration));
  return {.shard = shard,
          .servers = servers,
          .incarnation = incarnation,
          .fingerprint = served.fingerprint,
          .buckets = served.shard->buckets(),
          .declaration = {reinterpret_cast<const char*>(builder.GetBufferPointer()),
                          builder.GetSize()}};
}

}  // namespace

std::string order_record_path(const std::string& file, int shard, std::uint32_t incarnation) {
  const std::string path = fmt::format("{}.shard{}", file, shard);
  return incarnation <= 1 ? path : fmt::format("{}.{}", path, incarnation);
}

OrderRecordWriter::OrderRecordWriter(std::string path, const OrderHeader& header)
    : path_(std::move(path)) {
  constexpr mode_t kReadWriteForAll = 0666;
  constexpr int kFlags = O_WRONLY | O_CREAT | O_CLOEXEC;
  file_ = FileDescriptor(::open(path_.c_str(), kFlags, kReadWriteForAll));
  if (!file_) throw FileError(describe_errno("open order record", path_, errno));
  claim_empty_file(file_, "--record", path_);
  buffer_ = header_bytes(header);
  flush();
}

OrderRecordWriter::~OrderRecordWriter() {
  try {
    flush();
  } catch (const std::exception& error) {
    log(LogLevel::kWarning, error.what());
  }
}

void OrderRecordWriter::append(const OrderEntry& entry) {
  if (!file_) return;
  const EntryBytes bytes = entry_bytes(entry);
  append_to(buffer_, std::as_bytes(std::span(&bytes, 1)));
  if (buffer_.size() >= kBufferBytes) flush();
}

void OrderRecordWriter::flush() {
  if (!file_) return;
  if (write_all(file_, buffer_) < buffer_.size()) {
    const int error = errno;
    file_.reset();
    buffer_.clear();
    throw FileError(describe_errno("write order record", path_, error));
  }
  buffer_.clear();
}

OrderRecord read_order_record(const std::string& path) {
  const std::vector<std::byte> bytes = read_whole(path);
  Cursor cursor(path, bytes);
  OrderRecord record{.header = take_header(cursor)};
  record.entries.reserve(cursor.left() / sizeof(EntryBytes));
  while (cursor.left() >= sizeof(EntryBytes)) {
    const auto entry = cursor.take_struct<EntryBytes>();
    if (!is_sound(entry, record.header.buckets.size())) {
      cursor.damaged(fmt::format("entry {} was changed", record.entries.size()));
    }
    record.entries.push_back(entry_of(entry));
  }
  return record;
}

ServiceRecord::ServiceRecord(const std::filesystem::path& file, int shard, int servers,
                             std::uint32_t incarnation, const ServedVariables& served)
    : writer_(order_record_path(file.string(), shard, incarnation),
              order_header_of(shard, servers, incarnation, served)) {
  if (incarnation <= 1) remove_later_records(order_record_path(file.string(), shard, 1));
  for (std::size_t b = 0; b < served.shard->buckets().size(); ++b) {
    const auto bucket = static_cast<BucketId>(b);
    if (const std::uint64_t version = served.shard->view(bucket).version; version > 0) {
      written(bucket, version);
    }
  }
}

void ServiceRecord::written(BucketId bucket, std::uint64_t version) {
  append({.kind = OrderEntry::Kind::kWritten, .bucket = bucket, .version_after = version});
}

template <typename Action>
void ServiceRecord::attempt(Action action) {
  try {
    action();
  } catch (const FileError& error) {
    log(LogLevel::kWarning,
        std::string("the record of the order of pushes ends here: ") + error.what());
  }
}

void ServiceRecord::append(const OrderEntry& entry) {
  attempt([&] { writer_.append(entry); });
}

void ServiceRecord::flush() {
  attempt([this] { writer_.flush(); });
}

void ServiceRecord::processed(const ShardEvent& event, std::uint32_t worker_incarnation,
                              const wire::PushT& push) {
  OrderEntry entry{.kind = event.kind == ShardEvent::Kind::kApplied ? OrderEntry::Kind::kApplied
                                                                    : OrderEntry::Kind::kDropped,
                   .worker = event.worker,
                   .incarnation = worker_incarnation,
                   .bucket = event.bucket,
                   .sequence = event.sequence,
                   .version_read = push.version,
                   .version_after = event.version,
                   .staleness = event.staleness,
                   .learning_rate = push.learning_rate};
  const std::size_t inner_steps = std::min(push.inner_rates.size(), push.batches.size());
  for (std::size_t i = 0; i < inner_steps; ++i) {
    append({.kind = OrderEntry::Kind::kInnerStep,
            .worker = event.worker,
            .incarnation = worker_incarnation,
            .bucket = event.bucket,
            .sequence = event.sequence,
            .learning_rate = push.inner_rates[i],
            .lanes = push.lanes,
            .batch = from_wire(push.batches[i])});
  }
  if (push.ends_step && !push.batches.empty()) {
    entry.lanes = push.lanes;
    entry.batch = from_wire(push.batches.front());
  }
  append(entry);
}

void ServiceRecord::answered(const ShardEvent& event, std::uint32_t worker_incarnation) {
  append({.kind = OrderEntry::Kind::kAnswered,
          .worker = event.worker,
          .incarnation = worker_incarnation,
          .bucket = event.bucket,
          .sequence = event.sequence,
          .version_after = event.version});
}

}  // namespace syncopate::ps
