#include "ps/server/snapshot_writer.h"

#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstring>
#include <fstream>
#include <utility>

#include "models/base/errors.h"
#include "models/base/log.h"
#include "models/base/replacing_file.h"

namespace syncopate::ps {
namespace {

constexpr std::uint64_t kChecksumPrime = 0x9E3779B185EBCA87;

std::uint64_t mix(std::uint64_t lane, std::uint64_t word) noexcept {
  return std::rotl((lane ^ word) * kChecksumPrime, 31);
}

// A snapshot file: magic, length of the header, header, checksum up to here, values, slots,
// checksum of everything.
constexpr std::uint64_t kSnapshotMagic = 0x33544f4853504e53;  // "SNPSHOT3"
constexpr std::uint64_t kExtraWords = 4;
constexpr std::uint64_t kLongestHeader = std::uint64_t{1} << 32;
constexpr int kMostSlots = 1000;
constexpr std::string_view kSuffix = ".snapshot";
constexpr const char* kVoidSuffix = ".void";

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

wire::SnapshotHeaderT header_of(const SnapshotWriter::Job& job, int shard,
                                const std::string& nonce) {
  const ServedSnapshot& copy = *job.snapshot;
  wire::SnapshotHeaderT header;
  header.snapshot = copy.number;
  header.shard = shard;
  header.declaration = std::make_unique<wire::DeclarationT>(job.declaration);
  for (const WorkerClock& entry : copy.entries) header.entries.push_back(entry_to_wire(entry));
  for (const ShardSnapshot::Variable& variable : copy.state.buckets) {
    auto bucket = std::make_unique<wire::SnapshotBucketT>();
    bucket->version = variable.version;
    for (const WorkerClock& entry : variable.workers)
      bucket->workers.push_back(entry_to_wire(entry));
    header.buckets.push_back(std::move(bucket));
  }
  header.running_statistics = copy.running_statistics;
  header.coordinator = job.coordinator;
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

std::string prefix_of(int index) { return fmt::format("shard-{}-", index); }

std::filesystem::path path_of(const std::filesystem::path& dir, int index, std::uint64_t snapshot) {
  return dir / fmt::format("{}{}{}", prefix_of(index), snapshot, kSuffix);
}

// Returns whether the file is a temporary file that a killed server has left behind.
bool is_temporary(const std::string& name, int index) {
  return name.starts_with(prefix_of(index)) && !name.ends_with(kSuffix);
}

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

SnapshotWriter::SnapshotWriter(std::filesystem::path dir, int index, std::string nonce,
                               std::function<void()> renew_dir)
    : dir_(std::move(dir)),
      index_(index),
      nonce_(std::move(nonce)),
      renew_dir_(std::move(renew_dir)) {
  if (dir_.empty()) return;
  remove_foreign();
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
  pthread_setname_np(thread_.native_handle(), "ps-snapshot");
}

SnapshotWriter::~SnapshotWriter() {
  thread_.request_stop();
  asked_.notify_all();
}

void SnapshotWriter::remove_foreign() {
  if (!std::filesystem::is_directory(dir_)) return;
  std::vector<std::filesystem::path> unwanted;
  for (const auto& entry : std::filesystem::directory_iterator(dir_)) {
    if (is_temporary(entry.path().filename().string(), index_)) unwanted.push_back(entry.path());
  }
  for (const std::uint64_t number : files_in_folder()) {
    std::filesystem::path path = path_of(dir_, index_, number);
    bool is_own = false;
    try {
      const std::unique_ptr<wire::SnapshotHeaderT> fields =
          SnapshotReader(path).read_header().fields;
      is_own = fields->nonce == nonce_ && fields->shard == index_ && fields->snapshot == number;
    } catch (const FileError& error) {
      log(LogLevel::kWarning, std::string(error.what()) + "; it is removed");
    }
    if (is_own) {
      existing_.insert(number);
    } else {
      unwanted.push_back(std::move(path));
    }
  }
  for (const std::filesystem::path& path : unwanted) std::filesystem::remove(path);
}

std::set<std::uint64_t> SnapshotWriter::files_in_folder() const {
  std::set<std::uint64_t> numbers;
  const std::string prefix = prefix_of(index_);
  for (const auto& entry : std::filesystem::directory_iterator(dir_)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(prefix) || !name.ends_with(kSuffix)) continue;
    const std::string digits =
        name.substr(prefix.size(), name.size() - prefix.size() - kSuffix.size());
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (error == std::errc() && end == digits.data() + digits.size()) numbers.insert(number);
  }
  return numbers;
}

std::vector<std::uint64_t> SnapshotWriter::existing() const {
  const std::lock_guard lock(mutex_);
  return {existing_.begin(), existing_.end()};
}

void SnapshotWriter::remove_file(std::uint64_t number) {
  std::filesystem::remove(path_of(dir_, index_, number));
  const std::lock_guard lock(mutex_);
  existing_.erase(number);
}

void SnapshotWriter::void_file(std::uint64_t number) {
  const std::filesystem::path path = path_of(dir_, index_, number);
  // The new name is a temporary file's: a file that is left behind is removed at the next start.
  const std::filesystem::path renamed = path.string() + kVoidSuffix;
  std::error_code failed;
  std::filesystem::rename(path, renamed, failed);
  if (failed) return remove_file(number);
  const std::lock_guard lock(mutex_);
  existing_.erase(number);
  void_.push_back(renamed);
}

void SnapshotWriter::write(Job job) {
  {
    const std::lock_guard lock(mutex_);
    job_ = std::move(job);
  }
  asked_.notify_all();
}

std::optional<std::uint64_t> SnapshotWriter::take_written() {
  event_.clear();
  const std::lock_guard lock(mutex_);
  return std::exchange(written_, std::nullopt);
}

std::optional<SnapshotWriter::Unwritten> SnapshotWriter::take_unwritten() {
  const std::lock_guard lock(mutex_);
  return std::exchange(unwritten_, std::nullopt);
}

std::optional<std::string> SnapshotWriter::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

void SnapshotWriter::read_later(std::uint64_t number) {
  {
    const std::lock_guard lock(mutex_);
    wanted_ = number;
    read_.reset();
    unreadable_.reset();
  }
  asked_.notify_all();
}

std::optional<std::uint64_t> SnapshotWriter::take_unreadable() {
  const std::lock_guard lock(mutex_);
  return std::exchange(unreadable_, std::nullopt);
}

std::optional<SnapshotFile> SnapshotWriter::take_read() {
  const std::lock_guard lock(mutex_);
  return std::exchange(read_, std::nullopt);
}

void SnapshotWriter::run(const std::stop_token& stop) {
  for (;;) {
    std::optional<Job> job;
    std::optional<std::uint64_t> wanted;
    std::vector<std::filesystem::path> unwanted;
    {
      std::unique_lock lock(mutex_);
      if (!asked_.wait(lock, stop, [&] { return job_ || wanted_ || !void_.empty(); })) return;
      wanted = std::exchange(wanted_, std::nullopt);  // reads come first: the job waits for one
      if (!wanted && job_) {
        job = std::exchange(job_, std::nullopt);
        writing_ = job->snapshot->number;
        is_unwanted_ = false;
      }
      if (!wanted && !job) unwanted = std::exchange(void_, {});
    }
    if (wanted) read_file(*wanted);
    if (job) write_file(*job);
    std::error_code ignored;  // a file that stays is removed at the next start
    for (const std::filesystem::path& path : unwanted) std::filesystem::remove(path, ignored);
    event_.notify();
  }
}

void SnapshotWriter::renew_dir() {
  try {
    if (renew_dir_) renew_dir_();
  } catch (...) {
    const std::lock_guard lock(mutex_);
    existing_.clear();
    throw;
  }
  const std::lock_guard lock(mutex_);
  std::error_code ignored;
  std::erase_if(existing_, [&](std::uint64_t number) {
    return !std::filesystem::exists(path_of(dir_, index_, number), ignored);
  });
}

void SnapshotWriter::write_file(const Job& job) {
  const std::uint64_t number = job.snapshot->number;
  std::optional<std::string> problem;
  bool is_renewed = false;
  try {
    renew_dir();
    is_renewed = true;
    save(job);
    {
      const std::lock_guard lock(mutex_);
      if (!is_unwanted_) existing_.insert(number);
    }
    remove_unwanted(number);
  } catch (const std::exception& error) {
    problem = error.what();
    std::error_code ignored;
    if (is_renewed) std::filesystem::remove(path_of(dir_, index_, number), ignored);
  }
  {
    const std::lock_guard lock(mutex_);
    if (problem) {
      existing_.erase(number);
      unwritten_ = Unwritten{number, *problem};
    } else if (!is_unwanted_) {
      written_ = number;
    }
    writing_.reset();
  }
}

void SnapshotWriter::read_file(std::uint64_t number) {
  std::optional<SnapshotFile> file;
  std::optional<std::uint64_t> unreadable;
  std::optional<std::string> problem;
  try {
    file = read(number);
  } catch (const FileError& error) {
    log(LogLevel::kWarning, std::string(error.what()) + "; it is removed");
    unreadable = number;
    std::error_code ignored;  // a damaged file that cannot be removed stays unreadable
    std::filesystem::remove(path_of(dir_, index_, number), ignored);
  } catch (const std::exception& error) {
    problem = error.what();
  }
  const std::lock_guard lock(mutex_);
  if (unreadable) existing_.erase(number);
  if (wanted_) return;  // another snapshot has been requested since
  if (problem) failure_ = problem;
  read_ = std::move(file);
  unreadable_ = unreadable;
}

bool SnapshotWriter::is_unwanted() const {
  const std::lock_guard lock(mutex_);
  return is_unwanted_;
}

void SnapshotWriter::remove_unwanted(std::uint64_t written) {
  if (is_unwanted()) return remove_file(written);
  const std::vector<std::uint64_t> numbers = existing();
  for (std::size_t i = 0; i + kKept < numbers.size(); ++i) remove_file(numbers[i]);
}

void SnapshotWriter::remove_from(std::uint64_t number) {
  {
    const std::lock_guard lock(mutex_);
    if (job_ && job_->snapshot->number >= number) job_.reset();
    if (written_ && *written_ >= number) written_.reset();
    is_unwanted_ = is_unwanted_ || (writing_ && *writing_ >= number);
  }
  for (const std::uint64_t other : existing()) {
    if (other >= number) void_file(other);
  }
  asked_.notify_all();
}

void SnapshotWriter::save(const Job& job) const {
  flatbuffers::FlatBufferBuilder builder;
  const wire::SnapshotHeaderT header = header_of(job, index_, nonce_);
  builder.Finish(wire::SnapshotHeader::Pack(builder, &header));
  const std::span<const std::byte> head =
      std::as_bytes(std::span(builder.GetBufferPointer(), builder.GetSize()));
  ReplacingFile file(path_of(dir_, index_, job.snapshot->number));
  std::uint64_t sum = block_checksum(kSnapshotMagic, head);
  file.write(bytes_of(kSnapshotMagic));
  file.write(bytes_of(head.size()));
  file.write(head);
  file.write(bytes_of(sum));
  const auto write_block = [&](const Tensor& block) {
    file.write(block.bytes());
    sum = block_checksum(sum, block.bytes());
  };
  write_block(job.snapshot->state.values);
  for (const Tensor& slot : job.snapshot->state.slots) write_block(slot);
  file.write(bytes_of(sum));
  if (!is_unwanted()) file.commit();
}

SnapshotFile SnapshotWriter::read(std::uint64_t number) const {
  const std::filesystem::path path = path_of(dir_, index_, number);
  SnapshotReader reader(path);
  const SnapshotReader::Header head = reader.read_header();
  wire::SnapshotHeaderT* const header = head.fields.get();
  std::uint64_t sum = head.sum;
  SnapshotFile file;
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
  file.number = number;
  file.declaration = *header->declaration;
  file.entries = entries_from_wire(header->entries);
  file.running_statistics = std::move(header->running_statistics);
  file.coordinator = std::move(header->coordinator);
  return file;
}

std::vector<std::uint8_t> SnapshotWriter::read_coordinator(std::uint64_t number) const {
  const std::filesystem::path path = path_of(dir_, index_, number);
  return std::move(SnapshotReader(path).read_header().fields->coordinator);
}

}  // namespace syncopate::ps
