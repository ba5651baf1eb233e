#include "bench/input/pictures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <vector>

#include "bench/harness/peer.h"
#include "bench/harness/report.h"
#include "bench/harness/rounds.h"
#include "bench/input/decoding.h"
#include "models/base/errors.h"

namespace syncopate::bench {
namespace {

using nlohmann::json;

// Enough files for a mean over pictures; 100 pictures of 500x375 decode in about 0.15 s.
constexpr std::size_t kDecodedFiles = 100;

std::string percent_text(const Spread& ratio) { return spread_text(ratio, 100.0) + " %"; }

// Decodes all files until `seconds` have passed; returns pictures per second.
template <typename DecodeAll>
double decode_for(double seconds, std::size_t files, DecodeAll decode_all) {
  double passed = 0.0;
  double decoded = 0.0;
  while (passed < seconds) {
    passed += decode_all();
    decoded += static_cast<double>(files);
  }
  return decoded / passed;
}

// Whether the pictures are in records, which PyTorch does not read.
bool has_records(const InputBenchOptions& options) {
  return options.data_flag.starts_with("tfds:");
}

json measure_decoding(const InputBenchOptions& options, std::int64_t height, std::int64_t width) {
  const DataSplits data = open_dataset(options.data_flag, options.data);
  const std::vector<JpegFile> files = read_jpeg_files(*data.train, kDecodedFiles);
  const auto turn = [&](auto decode_all) {
    return
        [&, decode_all] { return decode_for(options.seconds_per_round, files.size(), decode_all); };
  };
  const Rounds rounds = take_rounds(
      options.rounds,
      {turn([&] { return decode_with_libjpeg(files); }), turn([&] { return decode_only(files); }),
       turn([&] { return decode_and_resize(files, height, width); })},
      {});
  const std::vector<double> bare = rounds.counted(0);
  const std::string note = is_quiet(rounds.foreign) ? "" : " NOT QUIET";
  std::vector<std::vector<std::string>> table = {
      {"one core", "pictures/s [min-max]", "of libjpeg-turbo [min-max]"},
      {"libjpeg-turbo alone", spread_text(spread_of(bare)), ""}};
  json document;
  const std::vector<std::string> names = {"decode",
                                          fmt::format("decode and resize to {}x{}", height, width)};
  for (std::size_t side = 1; side < rounds.sides.size(); ++side) {
    const std::vector<double> ours = rounds.counted(side);
    const Spread ratio = ratio_of(ours, bare);
    table.push_back({names[side - 1], spread_text(spread_of(ours)), percent_text(ratio) + note});
    document.push_back({{"name", names[side - 1]},
                        {"per_second_per_round", rounds.sides[side]},
                        {"ratio", spread_json(ratio)}});
  }
  std::cout << format_table(table) << describe_conditions(rounds) << std::endl;
  json result = {{"files", files.size()},
                 {"libjpeg_per_second_per_round", rounds.sides[0]},
                 {"ours", document}};
  result.update(conditions_json(rounds));
  return result;
}

// A peer's pipeline. Its turns have as many batches as take about the time of one of our turns.
class PeerPipeline {
 public:
  PeerPipeline(const InputBenchOptions& options, const std::string& loader, bool cached)
      : batch_size_(static_cast<double>(options.input.batch_size)), peer_({[&] {
          std::vector<std::string> command = {
              options.peer_python,
              peer_script("input_peer.py").string(),
              options.data_flag.substr(options.data_flag.find(':') + 1),
              "--serve",
              "--loader",
              loader,
              "--batch-size",
              std::to_string(options.input.batch_size),
              "--threads",
              threads_text(options.input),
              "--image-size",
              fmt::format("{}x{}", options.data.image.height, options.data.image.width)};
          if (cached) command.emplace_back("--cached");
          if (has_records(options)) command.emplace_back("--records");
          return PeerOptions{.command = std::move(command)};
        }()}) {
    batches_ = std::max(
        1, static_cast<int>(std::lround(turn() * options.seconds_per_round / batch_size_)));
  }

  double turn() {
    const std::vector<double> seconds = peer_.run(batches_);
    return batch_size_ * static_cast<double>(seconds.size()) /
           std::accumulate(seconds.begin(), seconds.end(), 0.0);
  }
  pid_t pid() const noexcept { return peer_.pid(); }
  const std::string& description() const noexcept { return peer_.description(); }

 private:
  double batch_size_;
  Peer peer_;
  int batches_ = 4;
};

// Compares the pipeline with the peers, either with pictures that are decoded for each batch, as in
// the first epoch, or with pictures from a cache, as in later ones.
json measure_pipeline(const InputBenchOptions& options, bool cached) {
  DataOptions data_options = options.data;
  if (!cached) data_options.image.cache_dir.clear();
  const DataSplits data = open_dataset(options.data_flag, data_options);
  const std::unique_ptr<BatchSource> source = make_batch_source(*data.train, options.input);
  if (cached) {  // the first epoch fills the cache
    for (std::int64_t i = 0; i <= source->batches_per_epoch(); ++i) source->next();
  }
  std::vector<std::unique_ptr<PeerPipeline>> peers;
  std::vector<Turn> turns = {[&] { return take_batches(*source, options.seconds_per_round); }};
  std::vector<pid_t> others;
  if (!options.peer_python.empty()) {
    // DataLoader keeps no decoded pictures.
    for (const char* loader : {"tf", "torch"}) {
      const bool is_torch = std::string_view(loader) == "torch";
      if (is_torch && (cached || has_records(options))) continue;
      peers.push_back(std::make_unique<PeerPipeline>(options, loader, cached));
      turns.emplace_back([peer = peers.back().get()] { return peer->turn(); });
      others.push_back(peers.back()->pid());
    }
  }
  const Rounds rounds = take_rounds(options.rounds, turns, others);
  const std::vector<double> ours = rounds.counted(0);
  std::vector<std::vector<std::string>> table = {
      {cached ? "later epochs, from a cache" : "first epoch, decoded", "pictures/s [min-max]",
       "ours / peer [min-max]"},
      {fmt::format("ours, {} input threads{}", threads_text(options.input),
                   options.input.autotune.threads
                       ? fmt::format(", {} at the end", source->counters().readers)
                       : ""),
       spread_text(spread_of(ours)), ""}};
  json document = {{"cached", cached}, {"ours_per_second_per_round", rounds.sides[0]}};
  for (std::size_t i = 0; i < peers.size(); ++i) {
    const std::vector<double> theirs = rounds.counted(i + 1);
    const Spread ratio = ratio_of(ours, theirs);
    table.push_back({peers[i]->description(), spread_text(spread_of(theirs)),
                     spread_text(ratio) + (is_quiet(rounds.foreign) ? " x" : " x NOT QUIET")});
    document["peers"].push_back({{"description", peers[i]->description()},
                                 {"per_second_per_round", rounds.sides[i + 1]},
                                 {"ratio", spread_json(ratio)}});
  }
  std::cout << format_table(table) << describe_conditions(rounds) << std::endl;
  document.update(conditions_json(rounds));
  return document;
}

}  // namespace

double take_batches(BatchSource& source, double seconds) {
  std::int64_t samples = 0;
  double passed = 0.0;
  source.next();
  const auto start = SteadyClock::now();
  while (passed < seconds) {
    samples += source.next().num_samples;
    passed = seconds_since(start);
  }
  return static_cast<double>(samples) / passed;
}

void measure_pictures(const InputBenchOptions& given) {
  require_writable(given.json_file);
  InputBenchOptions options = given;
  if (options.data.image.height == 0) {
    options.data.image.height = options.data.image.width = kDefaultImageSize;
  }
  json document = {{"data", options.data_flag},
                   {"batch_size", options.input.batch_size},
                   {"input_threads",
                    options.input.autotune.threads ? json("auto") : json(options.input.threads)},
                   {"image_size", {options.data.image.height, options.data.image.width}}};
  document["decoding"] =
      measure_decoding(options, options.data.image.height, options.data.image.width);
  document["pipeline"] = {measure_pipeline(options, false), measure_pipeline(options, true)};
  if (!options.json_file.empty()) write_report(options.json_file, document.dump(2));
}

}  // namespace syncopate::bench
