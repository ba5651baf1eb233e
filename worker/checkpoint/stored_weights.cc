#include "worker/checkpoint/stored_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <system_error>

#include "models/base/errors.h"

namespace syncopate {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kIndexSuffix = ".index.json";
constexpr std::uintmax_t kLongestIndex = 100'000'000;  // as long as a header may be

UsageError bad_index(const fs::path& path, std::string_view fault) {
  return UsageError(
      fmt::format("--init-from {}: {}; expected a safetensors file, or the index of sharded ones, "
                  "{{\"weight_map\": {{TENSOR: FILE, ...}}}}",
                  path.string(), fault));
}

nlohmann::json parse_json(const fs::path& path) {
  std::error_code error;
  const std::uintmax_t size = fs::file_size(path, error);
  if (error) throw FileError(fmt::format("open weights {}: {}", path.string(), error.message()));
  if (size > kLongestIndex) throw bad_index(path, fmt::format("JSON of {} bytes", size));
  std::ifstream stream(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(stream)), {});
  const bool throws = false;
  return nlohmann::json::parse(text, nullptr, throws);
}

}  // namespace

bool is_json_file(const fs::path& path) {
  std::error_code ignored;
  if (!fs::is_regular_file(path, ignored)) return false;  // a pipe would block
  if (path.extension() == ".json") return true;
  std::ifstream stream(path, std::ios::binary);
  std::array<char, 8> first{};
  stream.read(first.data(), first.size());
  // The length of a header, below 2^27, has zeros among its eight bytes.
  return stream.gcount() == first.size() && first[0] == '{' &&
         std::ranges::find(first, '\0') == first.end();
}

std::map<std::string, std::string> read_shard_index(const fs::path& path) {
  const nlohmann::json json = parse_json(path);
  if (json.is_discarded()) throw bad_index(path, "no JSON, or cut short");
  const auto map = json.is_object() ? json.find("weight_map") : json.end();
  if (!json.is_object() || map == json.end() || !map->is_object() || map->empty()) {
    throw bad_index(path, "JSON without a \"weight_map\" of tensors");
  }
  std::map<std::string, std::string> file_of;
  for (const auto& [tensor, file] : map->items()) {
    const std::string name = file.is_string() ? file.get<std::string>() : "";
    // An index from elsewhere must not lead to other files of this machine.
    if (name.empty() || name == "." || name == ".." || name.find('/') != std::string::npos ||
        name.find('\0') != std::string::npos) {
      throw bad_index(path, fmt::format("tensor {} is in the file '{}', which is no name of a file "
                                        "in the folder of the index",
                                        tensor, name));
    }
    file_of.emplace(tensor, name);
  }
  return file_of;
}

bool is_shard_index(const fs::path& path) {
  try {
    return is_json_file(path) && !read_shard_index(path).empty();
  } catch (const Error&) {
    return false;
  }
}

std::vector<fs::path> shards_of(const fs::path& index) {
  std::set<std::string> names;
  for (const auto& [tensor, file] : read_shard_index(index)) names.insert(file);
  std::vector<fs::path> paths;
  for (const std::string& name : names) paths.push_back(index.parent_path() / name);
  return paths;
}

fs::path index_beside(const fs::path& shard) {
  std::error_code error;
  const fs::path folder = shard.has_parent_path() ? shard.parent_path() : fs::path(".");
  for (fs::directory_iterator file(folder, error); !error && file != fs::directory_iterator();
       file.increment(error)) {
    if (!file->path().filename().string().ends_with(kIndexSuffix)) continue;
    try {
      const fs::path found = shard.parent_path() / file->path().filename();
      const std::vector<fs::path> shards = shards_of(found);
      if (std::ranges::find(shards, shard) != shards.end()) return found;
    } catch (const Error&) {
      continue;  // an index of something else
    }
  }
  return {};
}

fs::path index_of_shard(const fs::path& path) {
  fs::path index = index_beside(path);
  if (!index.empty()) return shards_of(index).size() > 1 ? index : fs::path();
  static const std::regex kForm(R"((.+)-\d{1,6}-of-(\d{1,6})(\.\w+))");
  std::smatch match;
  const std::string name = path.filename().string();
  if (!std::regex_match(name, match, kForm) || std::stoi(match[2]) < 2) return {};
  return path.parent_path() / (match[1].str() + match[3].str() + std::string(kIndexSuffix));
}

StoredWeights::StoredWeights(const fs::path& path) {
  if (!is_json_file(path)) {
    files_.emplace_back(path, "weights");
    for (const TensorEntry& entry : files_.front().tensors()) add(files_.front(), entry);
    return;
  }
  std::map<std::string, const SafetensorsReader*> by_file;
  for (const auto& [tensor, name] : read_shard_index(path)) {
    const fs::path shard = path.parent_path() / name;
    const SafetensorsReader*& file = by_file[name];
    std::error_code ignored;
    if (file == nullptr) {
      if (!fs::is_regular_file(shard, ignored)) {
        throw UsageError(fmt::format("--init-from {}: its shard {} is missing; fetch that, too",
                                     path.string(), shard.string()));
      }
      file = &files_.emplace_back(shard, "weights");
    }
    const TensorEntry* entry = file->find(tensor);
    if (entry == nullptr) {
      throw UsageError(fmt::format(
          "--init-from {}: tensor {} is not in {}, where the index has it; fetch the index and its "
          "shards again",
          path.string(), tensor, shard.string()));
    }
    add(*file, *entry);
  }
}

void StoredWeights::add(const SafetensorsReader& file, const TensorEntry& entry) {
  by_name_.emplace(entry.name, tensors_.size());
  tensors_.push_back(entry);
  file_of_.push_back(&file);
}

const FileMetadata& StoredWeights::metadata() const noexcept {
  return files_.size() == 1 ? files_.front().metadata() : no_metadata_;
}

void StoredWeights::verify_checksum() const { files_.front().verify_checksum(); }

const TensorEntry* StoredWeights::find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &tensors_[found->second];
}

void StoredWeights::read(const TensorEntry& entry, std::span<float> values) const {
  file_of_.at(by_name_.at(entry.name))->read(entry, values);
}

}  // namespace syncopate
