// `syncopate predict`: the class, or the numbers, of each sample of some files.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "deploy/commands/commands.h"
#include "deploy/commands/prediction_inputs.h"
#include "deploy/commands/trained_network.h"
#include "models/base/errors.h"
#include "worker/input/image/png_writer.h"
#include "worker/input/pictures/image_folder.h"
#include "worker/train/class_table.h"
#include "worker/train/evaluate.h"

namespace syncopate {
namespace {

constexpr std::int64_t kMostSamples = 64;  // of a batch

// The sample `row` of a file; -1: the file is one sample.
struct Place {
  std::string path;
  std::int64_t row = -1;
};

// Returns the probabilities of all classes. Source: Goodfellow et al. 2016, section 4.1.
std::vector<double> softmax(std::span<const float> logits) {
  const float largest = *std::ranges::max_element(logits);
  std::vector<double> probabilities;
  double sum = 0.0;
  for (const float logit : logits) {
    probabilities.push_back(std::exp(static_cast<double>(logit) - static_cast<double>(largest)));
    sum += probabilities.back();
  }
  for (double& probability : probabilities) probability /= sum;
  return probabilities;
}

// Computes predictions a batch at a time and prints them in the order of the samples.
class Predictor {
 public:
  Predictor(const CheckpointInfo& info, const PredictOptions& options, std::ostream& out)
      : trained_(info, recorded_network(info)),
        batch_size_(evaluation_batch(trained_.graph, kMostSamples)),
        backend_(make_cpu_backend(options.lanes)),
        model_(backend_->compile(trained_.graph, trained_.arena, trained_.state,
                                 {.mode = Mode::kEvaluate, .batch_size = batch_size_})),
        names_(split_class_names(info.progress.class_names, trained_.graph.num_classes())),
        is_json_(options.json),
        maps_dir_(options.maps_dir),
        out_(out) {
    const Node& input = trained_.graph.first_input();
    Shape shape = input.shape;
    shape.insert(shape.begin(), batch_size_);
    batch_.inputs = {make_host_tensor(shape, std::get<InputOp>(input.operation).dtype)};
    Shape target = trained_.graph.target_shape();
    target.insert(target.begin(), batch_size_);
    batch_.target = make_host_tensor(std::move(target), trained_.graph.target_dtype());
    if (!maps_dir_.empty() && !gives_maps()) {
      throw UsageError(fmt::format(
          "--maps {}: the network gives {} for each sample, and no label map; leave the flag out",
          maps_dir_.string(), gives_classes() ? "one class" : "numbers"));
    }
    if (!maps_dir_.empty()) {
      require_own_maps(options.inputs);
      std::error_code error;
      std::filesystem::create_directories(maps_dir_, error);
      if (error) {
        throw FileError(
            fmt::format("--maps {}: cannot create the folder: {}; choose another folder",
                        maps_dir_.string(), error.message()));
      }
    }
  }

  const Node& input() const { return trained_.graph.first_input(); }

  // Reads one sample, and predicts when a batch is full.
  void add(const Place& place, PredictionInput& file) {
    const std::span<std::byte> all = batch_.inputs[0].bytes();
    const std::size_t size = all.size() / static_cast<std::size_t>(batch_size_);
    file.read(std::max<std::int64_t>(place.row, 0), all.subspan(places_.size() * size, size));
    places_.push_back(place);
    if (static_cast<std::int64_t>(places_.size()) == batch_size_) finish();
  }

  // Predicts the samples that are left.
  void finish() {
    if (places_.empty()) return;
    batch_.num_samples = batch_.loss_divisor = static_cast<std::int64_t>(places_.size());
    (void)model_->forward(batch_.rows(0, batch_.num_samples), [](BucketId) {});
    const Tensor logits = model_->logits();
    const auto size = static_cast<std::size_t>(num_elements(trained_.graph.logits_shape()));
    for (std::size_t i = 0; i < places_.size(); ++i) {
      const std::span<const float> sample = logits.f32().subspan(i * size, size);
      if (gives_maps()) {
        print_map(places_[i], sample);
      } else if (!gives_classes()) {
        print_numbers(places_[i], sample);
      } else {
        print(places_[i], softmax(sample));
      }
    }
    out_ << std::flush;
    places_.clear();
  }

 private:
  bool gives_classes() const { return has_classes(trained_.graph.loss().kind); }
  bool gives_maps() const { return trained_.graph.gives_maps(); }
  std::string name_of(std::size_t number) const {
    return number < names_.size() ? printable(names_[number]) : fmt::format("class {}", number);
  }

  // Returns the file of a sample's label map.
  std::filesystem::path map_of(const Place& place) const {
    const std::string row = place.row < 0 ? "" : fmt::format("-{}", place.row);
    return maps_dir_ / (std::filesystem::path(place.path).stem().string() + row + ".png");
  }

  // Throws UsageError if the map of an input would replace an input or the map of another one.
  void require_own_maps(const std::vector<std::string>& inputs) const {
    std::set<std::filesystem::path> stems;
    for (const std::string& input : inputs) {
      const std::filesystem::path map = map_of({.path = input});
      if (!stems.insert(map).second) {
        throw UsageError(fmt::format(
            "--maps {}: {} has the name of another input, and so would its label map; predict them "
            "one after the other, into two folders",
            maps_dir_.string(), input));
      }
      std::error_code is_absent;
      if (std::filesystem::exists(map, is_absent) &&
          std::ranges::any_of(inputs, [&](const std::string& other) {
            return std::filesystem::equivalent(map, other, is_absent);
          })) {
        throw UsageError(
            fmt::format("--maps {}: the label map of {} would replace an input, {}; "
                        "choose another folder",
                        maps_dir_.string(), input, map.string()));
      }
    }
  }

  using Json = nlohmann::ordered_json;

  // Prints the share of each class's pixels, and writes the map.
  void print_map(const Place& place, std::span<const float> logits) const {
    const auto classes = static_cast<std::size_t>(trained_.graph.num_classes());
    std::vector<std::uint8_t> labels;
    std::vector<std::int64_t> counts(classes);
    for (std::size_t at = 0; at < logits.size(); at += classes) {
      const auto row = logits.subspan(at, classes);
      const auto best = static_cast<std::size_t>(std::ranges::max_element(row) - row.begin());
      labels.push_back(static_cast<std::uint8_t>(best));
      ++counts[best];
    }
    std::vector<double> shares;
    for (const std::int64_t count : counts) {
      shares.push_back(static_cast<double>(count) / static_cast<double>(labels.size()));
    }
    std::string map;
    if (!maps_dir_.empty()) {
      map = map_of(place).string();
      const Shape shape = trained_.graph.target_shape();
      write_label_png(map, labels, shape[1], shape[0]);
    }
    Json json = {{"shares", shares}};
    if (!map.empty()) json["map"] = map;
    std::string text;
    for (std::size_t c = 0; c < classes; ++c) {
      text += fmt::format("{}{} {:.1f}%", c == 0 ? "" : ", ", name_of(c), 100.0 * shares[c]);
    }
    print_line(place, json, text + (map.empty() ? "" : " -> " + printable(map)));
  }

  // Prints the values of a network of numbers: probabilities for binary cross-entropy.
  void print_numbers(const Place& place, std::span<const float> logits) const {
    const bool are_probabilities = trained_.graph.loss().kind == LossKind::kBinaryCrossEntropy;
    std::vector<double> values;
    values.reserve(logits.size());
    for (const float logit : logits) {
      const auto wide = static_cast<double>(logit);
      values.push_back(are_probabilities ? 1.0 / (1.0 + std::exp(-wide)) : wide);
    }
    std::string text;
    for (const double value : values) {
      text += text.empty() ? "" : ", ";
      text += are_probabilities ? fmt::format("{:.4f}", value) : fmt::format("{:.6g}", value);
    }
    print_line(place, {{are_probabilities ? "probabilities" : "values", values}},
               (are_probabilities ? "P(1) " : "predicted ") + text);
  }

  void print(const Place& place, const std::vector<double>& probabilities) {
    const auto best =
        static_cast<std::size_t>(std::ranges::max_element(probabilities) - probabilities.begin());
    const std::string name = best < names_.size() ? names_[best] : "";
    Json json = {{"class", best}};
    if (!name.empty()) json["name"] = name;
    json["probability"] = probabilities[best];
    json["probabilities"] = probabilities;
    print_line(place, json,
               fmt::format("class {}{}, probability {:.4f}", best,
                           name.empty() ? "" : " (" + printable(name) + ")", probabilities[best]));
  }

  // Prints the result of a sample: the members of `json` behind those of its place, or the text.
  void print_line(const Place& place, const Json& json, const std::string& text) const {
    Json line = {{"input", place.path}};
    if (place.row >= 0) line["row"] = place.row;
    line.update(json);
    const std::string row = place.row < 0 ? "" : fmt::format("[{}]", place.row);
    out_ << (is_json_ ? line.dump(-1, ' ', false, Json::error_handler_t::replace)
                      : fmt::format("{}{}: {}", printable(place.path), row, text))
         << '\n';
  }

  TrainedNetwork trained_;
  const std::int64_t batch_size_;
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<Model> model_;
  const std::vector<std::string> names_;
  const bool is_json_;
  const std::filesystem::path maps_dir_;
  std::ostream& out_;
  Batch batch_;
  std::vector<Place> places_;  // of the samples in the batch
};

}  // namespace

int run_predict(const PredictOptions& options, std::ostream& out) {
  const CheckpointInfo info = find_checkpoint(options.checkpoint);
  Predictor predictor(info, options, out);
  try {
    for (const std::string& path : options.inputs) {
      const auto file = open_prediction_input(
          path, {.input = predictor.input(),
                 .apply_exif = options.apply_exif || info.progress.apply_exif != 0,
                 .table_columns = info.progress.table_columns});
      if (file->size() == 0) throw UsageError(path + " has no samples");
      for (std::int64_t row = 0; row < file->size(); ++row) {
        predictor.add({path, file->has_rows() ? row : -1}, *file);
      }
    }
  } catch (const Error&) {
    predictor.finish();  // of the samples before the one that cannot be read
    throw;
  }
  predictor.finish();
  return 0;
}

}  // namespace syncopate
