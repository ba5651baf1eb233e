// The peer Gloo of `syncopate-bench all-reduce`. It runs Gloo's all-reduce over TCP on loopback
// with the algorithm that is fastest at each size. It can be started by hand:
//
//   printf 'run 1048576 100\nquit\n' | LD_PRELOAD=./libreno_shim.so ./gloo_all_reduce --ranks 2
#include <gloo/allreduce.h>
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/allreduce_ring.h>
#include <gloo/allreduce_ring_chunked.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>
#include <stdlib.h>
#include <unistd.h>

#include <exception>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>

#include "bench/all_reduce/all_reduce_side.h"
#include "models/base/errors.h"
#include "models/tensor/tensor.h"

namespace {

namespace fs = std::filesystem;
using syncopate::bench::RankGroup;

class GlooReducer final : public syncopate::bench::Reducer {
 public:
  explicit GlooReducer(std::shared_ptr<gloo::Context> context) : context_(std::move(context)) {}

  std::vector<std::string> algorithms() const override {
    std::vector<std::string> all = {"ring (old)", "ring, chunked", "halving, doubling"};
    // With more than two ranks, the new ring of Debian's Gloo pauses for tenths of a second per MB.
    if (context_->size == 2) all.emplace_back("ring (new)");
    return all;
  }

  void prepare(std::size_t algorithm, std::int64_t elements) override {
    if (algorithm == algorithm_ && values_.num_elements() == elements) return;
    old_.reset();
    if (values_.num_elements() != elements) {
      values_ = syncopate::make_host_tensor({elements}, syncopate::DType::kF32);
    }
    algorithm_ = algorithm;
    const std::vector<float*> values = {values_.f32().data()};
    const int count = static_cast<int>(elements);
    switch (algorithm) {
      case 0:
        old_ = std::make_unique<gloo::AllreduceRing<float>>(context_, values, count);
        return;
      case 1:
        old_ = std::make_unique<gloo::AllreduceRingChunked<float>>(context_, values, count);
        return;
      case 2:
        old_ = std::make_unique<gloo::AllreduceHalvingDoubling<float>>(context_, values, count);
        return;
      default:  // gloo::allreduce() needs no preparation
        return;
    }
  }

  std::span<float> input() override { return values_.f32(); }

  void all_reduce() override {
    if (old_) return old_->run();
    using Sum = void (*)(void*, const void*, const void*, std::size_t);
    const std::span<float> values = values_.f32();
    gloo::AllreduceOptions options(context_);
    options.setOutput(values.data(), values.size());
    options.setReduceFunction(static_cast<Sum>(&gloo::sum<float>));
    options.setAlgorithm(gloo::AllreduceOptions::Algorithm::RING);
    gloo::allreduce(options);
  }

  std::span<const float> result() override { return values_.f32(); }

 private:
  std::shared_ptr<gloo::Context> context_;
  // Gloo's older interface binds an algorithm object to one buffer.
  std::unique_ptr<gloo::Algorithm> old_;
  std::size_t algorithm_ = 0;
  syncopate::Tensor values_;
};

// Connects the ranks of Gloo through files in a temporary folder.
std::shared_ptr<gloo::Context> connect_all(RankGroup& group) {
  std::string folder = (fs::temp_directory_path() / "syncopate-gloo-XXXXXX").string();
  if (group.rank() == 0 && ::mkdtemp(folder.data()) == nullptr) {
    throw syncopate::FileError(syncopate::describe_errno("mkdtemp", folder, errno));
  }
  folder = group.share(folder);
  gloo::transport::tcp::attr loopback;
  loopback.hostname = "127.0.0.1";
  gloo::rendezvous::FileStore store(folder);
  auto context = std::make_shared<gloo::rendezvous::Context>(group.rank(), group.size());
  auto device = gloo::transport::tcp::CreateDevice(loopback);
  context->connectFullMesh(store, device);
  group.barrier(syncopate::Deadline::after(std::chrono::seconds(30)));
  if (group.rank() == 0) fs::remove_all(folder);
  return context;
}

void serve(int rank, int size) {
  const auto group =
      syncopate::bench::make_rank_group(rank, size, {"--ranks", std::to_string(size)});
  GlooReducer reducer(connect_all(*group));
  serve_all_reduce(*group, reducer, "Gloo over TCP, " + std::to_string(size) + " ranks");
}

}  // namespace

int main(int argc, char** argv) {
  int rank = 0;
  int size = 2;
  try {
    for (int i = 1; i + 1 < argc; i += 2) {
      const std::string flag = argv[i];
      if (flag == "--rank") rank = std::stoi(argv[i + 1]);
      if (flag == "--ranks") size = std::stoi(argv[i + 1]);
    }
    serve(rank, size);
  } catch (const std::exception& error) {
    std::cerr << "gloo_all_reduce: " << error.what() << std::endl;
    return 1;
  }
  return 0;
}
