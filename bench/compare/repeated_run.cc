#include "bench/compare/repeated_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "bench/compare/comparison_difference.h"

namespace syncopate::bench {
namespace {

using Json = nlohmann::ordered_json;

// Returns the lines of a run's file without the first one, which describes the run.
std::vector<Json> lines_in(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::vector<Json> lines;
  std::string text;
  std::getline(in, text);
  while (std::getline(in, text)) {
    Json line = Json::parse(text, nullptr, false);
    if (line.is_object()) lines.push_back(std::move(line));
  }
  return lines;
}

// Returns a field of the line with the event; null if there is none.
Json field_in(const std::vector<Json>& lines, const char* event, const char* key) {
  const auto found = std::ranges::find_if(
      lines, [&](const Json& line) { return value_at(line, "event") == event; });
  return found == lines.end() ? Json(nullptr) : value_at(*found, key);
}

// Returns how two lines at one place of the files differ.
std::string difference_of_lines(const Json& was, const Json& is) {
  for (const auto& [key, value] : was.items()) {
    const Json found = value_at(is, key.c_str());
    if (key == "device" || found == value) continue;
    const Json step = value_at(was, "step");
    return fmt::format("{}{}: expected {} {}, found {}", words_of(value_at(was, "event")),
                       step.is_null() ? "" : " of step " + words_of(step), key, value.dump(),
                       found.dump());
  }
  return "";
}

bool has_gpu(const RunSpec& run) {
  return std::ranges::any_of(run.train.strategy.devices,
                             [](const Device& device) { return device.kind == DeviceKind::kCuda; });
}

}  // namespace

std::string why_not_comparable(const RunSpec& run, Clock clock) {
  if (has_gpu(run) && !run.train.deterministic) return "GPU without --deterministic";
  if (clock == Clock::kVirtual || run.has_weights_independent_of_times()) return "";
  return std::string(!run.variant.is_synchronous        ? "asynchronous"
                     : run.variant.backup_workers > 0   ? "backup workers"
                     : run.train.loop.max_seconds > 0.0 ? "budget of seconds"
                                                        : "killed workers") +
         ", real clock";
}

std::string weights_in(const std::filesystem::path& file) {
  const Json hash = field_in(lines_in(file), "summary", "weights_hash");
  return hash.is_null() ? "" : words_of(hash);
}

std::string difference_of_repeated(const std::filesystem::path& recorded,
                                   const std::filesystem::path& repeated, Clock clock) {
  const std::vector<Json> was = lines_in(recorded);
  const std::vector<Json> is = lines_in(repeated);
  const Json failure = field_in(is, "failure", "reason");
  if (!failure.is_null()) return "it failed: " + words_of(failure);
  const std::string weights = words_of(field_in(was, "summary", "weights_hash"));
  const std::string found = words_of(field_in(is, "summary", "weights_hash"));
  if (weights != found) return fmt::format("expected weights {}, found {}", weights, found);
  if (clock == Clock::kReal) return "";
  if (was.size() != is.size()) {
    return fmt::format("expected {} lines in its file, found {}", was.size(), is.size());
  }
  for (std::size_t i = 0; i < was.size(); ++i) {
    const std::string difference = difference_of_lines(was[i], is[i]);
    if (!difference.empty()) return difference;
  }
  return "";
}

std::string difference_of_devices(const std::filesystem::path& recorded,
                                  const std::filesystem::path& repeated) {
  const Json was = field_in(lines_in(recorded), "summary", "device");
  const Json is = field_in(lines_in(repeated), "summary", "device");
  if (was == is || is.is_null()) return "";
  return fmt::format("the recorded run used {}, this run {}", words_of(was), words_of(is));
}

}  // namespace syncopate::bench
