#include "worker/checkpoint/tensor_names.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <set>

#include "models/base/errors.h"
#include "worker/checkpoint/foreign_file.h"
#include "worker/checkpoint/stored_weights.h"

namespace syncopate {
namespace {

// Modules that hold one other module, which PyTorch's wrappers add to names: DataParallel and
// DistributedDataParallel, torch.compile, FSDP and its helpers, DeepSpeed.
constexpr std::array<std::string_view, 5> kWrappers = {
    "module", "_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module", "_forward_module"};
constexpr std::string_view kSlots = "optimizer.";
constexpr std::size_t kListedPrefixes = 4;

// Returns the name without the ":0" that Keras 2 appends.
std::string_view without_number(std::string_view name) {
  return name.ends_with(":0") ? name.substr(0, name.size() - 2) : name;
}

std::string without_wrappers(std::string_view name) {
  std::string text;
  for (std::size_t begin = 0; begin < name.size();) {
    const std::size_t end = std::min(name.find('.', begin), name.size() - 1) + 1;
    const std::string_view part = name.substr(begin, end - begin);
    const bool is_wrapper =
        part.ends_with('.') &&
        std::ranges::find(kWrappers, part.substr(0, part.size() - 1)) != kWrappers.end();
    if (!is_wrapper) text += part;
    begin = end;
  }
  return text;
}

// Whether one word of the prefix says that its tensors are a moving average.
bool is_of_average(std::string_view prefix) {
  std::string word;
  for (const char c : std::string(prefix) + ".") {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      word += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      continue;
    }
    if (word == "ema" || word == "swa") return true;
    word.clear();
  }
  return false;
}

// Returns the beginning of a tensor's name that is this prefix and the wrappers before and in it.
std::string_view with_wrappers(std::string_view name, std::string_view prefix) {
  std::size_t end = 0;
  while (without_wrappers(name.substr(0, end)).size() < prefix.size()) {
    end = std::min(name.find_first_of("./", end), name.size() - 1) + 1;
  }
  return name.substr(0, end);
}

// Returns the Python that loads the tensors of a file, or of the shards of an index.
std::string python_that_loads(const std::filesystem::path& path) {
  const std::string file = in_python_line(path.string(), "FILE");
  if (!is_json_file(path)) return fmt::format("s.load_file('{}')", file);
  return fmt::format(
      "{{a: b for x in set(__import__('json').load(open('{}'))['weight_map'].values()) for a, b in "
      "s.load_file('{}' + x).items()}}",
      file, file.substr(0, file.find_last_of('/') + 1));
}

using Tensors = std::vector<const TensorEntry*>;
// By prefix, and by the wanted name behind it.
using Candidates = std::map<std::string, std::map<std::string, Tensors>>;

Candidates candidates_of(const std::vector<TensorEntry>& tensors,
                         const std::set<std::string, std::less<>>& wanted) {
  Candidates candidates;
  for (const TensorEntry& tensor : tensors) {
    const std::string name = without_wrappers(without_number(tensor.name));
    for (std::size_t begin = 0; begin != std::string::npos;) {
      if (const auto found = wanted.find(std::string_view(name).substr(begin));
          found != wanted.end()) {
        candidates[name.substr(0, begin)][*found].push_back(&tensor);
      }
      begin = name.find_first_of("./", begin);
      if (begin != std::string::npos) ++begin;
    }
  }
  return candidates;
}

// Removes the prefixes that meet the condition, unless all do.
template <typename Condition>
void remove_unless_all(std::vector<std::string>& prefixes, const Condition& condition) {
  std::vector<std::string> left;
  std::ranges::remove_copy_if(prefixes, std::back_inserter(left), condition);
  if (!left.empty()) prefixes = std::move(left);
}

bool have_shapes(const std::map<std::string, Tensors>& tensors,
                 std::span<const TensorEntry> wanted) {
  return std::ranges::all_of(wanted, [&](const TensorEntry& want) {
    return tensors.at(without_wrappers(want.name)).front()->shape == want.shape;
  });
}

}  // namespace

TensorNames::TensorNames(const std::vector<TensorEntry>& tensors,
                         std::span<const TensorEntry> wanted, const std::filesystem::path& path) {
  for (const TensorEntry& tensor : tensors) {
    found_.emplace(without_number(tensor.name), &tensor);
  }
  const auto is_there = [&](const TensorEntry& want) { return found_.contains(want.name); };
  if (std::ranges::all_of(wanted, is_there)) return;

  std::set<std::string, std::less<>> names;
  for (const TensorEntry& want : wanted) names.insert(without_wrappers(want.name));
  const Candidates candidates = candidates_of(tensors, names);
  std::vector<std::string> prefixes;
  for (const auto& [prefix, found] : candidates) {
    if (found.size() == names.size()) prefixes.push_back(prefix);
  }
  const bool fits = !prefixes.empty();
  const bool as_it_is = candidates.contains("") && candidates.at("").size() == names.size();
  if (as_it_is) prefixes = {""};
  remove_unless_all(prefixes, [](const std::string& prefix) { return prefix.starts_with(kSlots); });
  remove_unless_all(prefixes, [&](const std::string& prefix) {
    return !have_shapes(candidates.at(prefix), wanted);
  });
  const std::vector<std::string> all = prefixes;
  remove_unless_all(prefixes, is_of_average);
  const auto in_file = [&](const std::string& prefix) {
    return std::string(with_wrappers(candidates.at(prefix).begin()->second.front()->name, prefix));
  };
  if (prefixes.size() > 1) {
    std::vector<std::string> shown;
    for (const std::string& prefix : prefixes) {
      if (shown.size() < kListedPrefixes) shown.push_back(in_file(prefix));
    }
    throw UsageError(fmt::format(
        "--init-from {} has the tensors of the network {} times, under {}; keep those of one: "
        "python3 -c \"import safetensors.torch as s; q = '{}'; s.save_file({{k[len(q):]: v for k, "
        "v "
        "in {}.items() if k.startswith(q)}}, 'ONE.safetensors')\"",
        path.string(), prefixes.size(), fmt::join(shown, ", "),
        in_python_line(shown.front(), "PREFIX"), python_that_loads(path)));
  }
  // If no prefix fits, the prefix of most tensors serves the message that names a missing tensor.
  if (!fits) {
    const auto most = std::ranges::max_element(
        candidates, {}, [](const auto& candidate) { return candidate.second.size(); });
    if (most == candidates.end() || most->second.size() * 2 <= names.size()) return;
    prefixes = {most->first};
  }

  const std::string& prefix = prefixes.front();
  is_literal_ = false;
  found_.clear();
  for (const TensorEntry& tensor : tensors) {
    const std::string name = without_wrappers(without_number(tensor.name));
    if (!name.starts_with(prefix)) continue;
    const auto [other, is_new] = found_.emplace(name.substr(prefix.size()), &tensor);
    if (is_new) continue;
    throw UsageError(fmt::format(
        "--init-from {} has tensor {} twice, as {} and {}; expected one; write a file with one of "
        "them",
        path.string(), other->first, other->second->name, tensor.name));
  }
  for (const TensorEntry& want : wanted) {
    const TensorEntry* tensor = find(want.name);
    if (tensor == nullptr || without_number(tensor->name) == want.name) continue;
    const std::string_view full = without_number(tensor->name);
    note_ = full.ends_with(want.name) ? fmt::format("without the prefix {}",
                                                    full.substr(0, full.size() - want.name.size()))
                                      : fmt::format("{} for {} and so on", full, want.name);
    break;
  }
  if (all.size() > 1) {
    std::vector<std::string> others;
    for (const std::string& other : all) {
      if (other != prefix) others.push_back(in_file(other));
    }
    note_ += fmt::format(", not {}", fmt::join(others, ", "));
  }
}

const TensorEntry* TensorNames::find(std::string_view name) const {
  const auto found = found_.find(is_literal_ ? std::string(name) : without_wrappers(name));
  return found == found_.end() ? nullptr : found->second;
}

}  // namespace syncopate
