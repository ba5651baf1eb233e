#include "worker/input/record/record_shards.h"

#include <fmt/format.h>

#include <algorithm>

#include "models/base/errors.h"
#include "models/base/random.h"

namespace syncopate {

RecordShards::RecordShards(std::span<const std::filesystem::path> paths, IndexOptions& options,
                           UnpackedBudget& budget) {
  for (const std::filesystem::path& path : paths) {
    files_.push_back(std::make_unique<RecordFile>(path, budget));
  }
  indexes_ = index_records(files_, options);
  starts_.push_back(0);
  for (const RecordIndex& index : indexes_) {
    starts_.push_back(starts_.back() + static_cast<std::int64_t>(index.records.size()));
  }
}

RecordShards::Location RecordShards::at(std::int64_t index) const {
  check(index >= 0 && index < size(), "a sample outside the data set");
  const auto after = std::ranges::upper_bound(starts_, index);
  const auto file = static_cast<std::size_t>(after - starts_.begin() - 1);
  const std::int64_t number = index - starts_[file];
  return {*files_[file], indexes_[file].records[static_cast<std::size_t>(number)], number};
}

std::int64_t RecordShards::largest_value() const {
  std::int64_t largest = -1;
  for (const RecordIndex& index : indexes_) {
    for (const IndexedRecord& record : index.records) largest = std::max(largest, record.value);
  }
  return largest;
}

std::vector<std::byte> RecordShards::read(std::int64_t index) const {
  const Location location = at(index);
  return location.file.read(location.indexed.place);
}

std::string RecordShards::describe(std::int64_t index) const {
  const Location location = at(index);
  return location.file.describe(location.indexed.place);
}

std::uint64_t RecordShards::stamp(std::int64_t index) const {
  const Location location = at(index);
  return hash_name(fmt::format("{} {} {} {} {}", location.file.path(),
                               location.file.stamp().size_bytes, location.file.stamp().modified,
                               location.indexed.place.offset, location.indexed.place.length));
}

std::uint32_t RecordShards::hashed(std::int64_t index, std::uint32_t below) const {
  const Location location = at(index);
  const std::string name = std::filesystem::path(location.file.path()).filename().string();
  return RandomStream(hash_name(name), 0).below(static_cast<std::uint64_t>(location.number), below);
}

}  // namespace syncopate
