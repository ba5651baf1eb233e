// Trains a network of its own on data of its own, the points of moons.csv, under any strategy:
//   ./moons --epochs 60 --batch-size 32
//   syncopate launch --workers 2 -- ./moons --strategy multi-worker-mirrored --epochs 60
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "deploy/program.h"
#include "models/base/errors.h"
#include "models/base/random.h"

using namespace syncopate;

// Points of the plane in two classes, from lines "x,y,class". Every fifth point is a test sample.
class Points final : public Dataset {
 public:
  Points(const char* path, bool is_test) {
    std::ifstream file(path);
    if (!file) throw UsageError(std::string(path) + " cannot be read");
    std::string line;
    for (int number = 0; std::getline(file, line); ++number) {
      Point point{};
      int end = 0;
      std::sscanf(line.c_str(), "%f,%f,%d %n", &point.x, &point.y, &point.label, &end);
      if (end == 0 || end != std::ssize(line)) {
        throw UsageError(path + (": no point in line " + std::to_string(number + 1)));
      }
      if ((number % 5 == 0) == is_test) points_.push_back(point);
    }
  }
  std::int64_t size() const noexcept override { return std::ssize(points_); }
  const SampleSpec& spec() const noexcept override { return spec_; }
  void read(std::int64_t index, const Draw& /*draw*/, const SampleView& sample) const override {
    std::memcpy(sample.inputs[0].data(), &points_[index], 2 * sizeof(float));
    std::memcpy(sample.target.data(), &points_[index].label, sizeof(std::int32_t));
  }
  std::int32_t label(std::int64_t index) const override { return points_[index].label; }
  std::uint64_t fingerprint(std::int64_t index) const override {
    return hash_name({reinterpret_cast<const char*>(&points_[index]), sizeof(Point)});
  }

 private:
  struct Point {
    float x;
    float y;
    std::int32_t label;
  };
  SampleSpec spec_ = classified_samples({2}, 2, DType::kF32);
  std::vector<Point> points_;
};

DataSplits open_points(const DataOptions& /*options*/) {
  return {.name = "moons",
          .train = std::make_unique<Points>(MOONS_CSV, false),
          .test = std::make_unique<Points>(MOONS_CSV, true)};
}

Graph make_network(const DataSplits& /*data*/) {
  GraphBuilder network("moons-network");
  const NodeId x = network.input({2}, {.dtype = DType::kF32, .mean = {0.5F}, .stddev = {1.0F}});
  const NodeId hidden = network.relu(network.dense(x, "hidden", 32, Init::kHeUniform));
  return network.finish(network.dense(hidden, "classes", 2));
}

int main(int argc, char** argv) {
  return run_program(argc, argv, {.open_data = open_points, .make_network = make_network});
}
