#include "worker/input/record/record_writer.h"

#include <cstdint>

#include "worker/input/record/crc32c.h"

namespace syncopate {
namespace {

constexpr std::size_t kWriteBytes = std::size_t{1} << 20;  // of one system call

template <typename Number>
void append_number(Number number, std::vector<std::byte>& target) {
  const auto bytes = std::as_bytes(std::span(&number, 1));
  target.insert(target.end(), bytes.begin(), bytes.end());
}

}  // namespace

void append_record(std::span<const std::byte> record, std::vector<std::byte>& target) {
  const std::uint64_t length = record.size();
  append_number(length, target);
  append_number(masked_crc32c(std::as_bytes(std::span(&length, 1))), target);
  target.insert(target.end(), record.begin(), record.end());
  append_number(masked_crc32c(record), target);
}

void RecordWriter::write(std::span<const std::byte> record) {
  append_record(record, buffer_);
  if (buffer_.size() >= kWriteBytes) flush();
}

void RecordWriter::commit() {
  flush();
  file_.commit();
}

void RecordWriter::flush() {
  file_.write(buffer_);
  buffer_.clear();
}

}  // namespace syncopate
