// Runs one rank of our side of `syncopate-bench all-reduce`: the ring between processes that a
// training job of several tasks uses. Tensors lie in the collective's memory block, as gradients do
// in training.
#include <memory>
#include <string>

#include "bench/all_reduce/all_reduce_side.h"
#include "bench/harness/bench_commands.h"
#include "bench/harness/local_cluster.h"
#include "models/base/affinity.h"
#include "models/base/errors.h"
#include "strategies/collective/collectives.h"

namespace syncopate::bench {
namespace {

class RingReducer final : public Reducer {
 public:
  explicit RingReducer(Collective& collective) : collective_(collective) {}

  std::vector<std::string> algorithms() const override { return {"ring"}; }
  void prepare(std::size_t /*algorithm*/, std::int64_t elements) override {
    if (elements > collective_.block().num_elements()) {
      throw UsageError("the tensor is larger than --largest-bytes");
    }
    tensor_ = collective_.block().rows(0, elements);
  }
  std::span<float> input() override { return tensor_.f32(); }
  void all_reduce() override { collective_.wait(collective_.all_reduce(tensor_, 0)); }
  std::span<const float> result() override { return tensor_.f32(); }

 private:
  Collective& collective_;
  Tensor tensor_;
};

// Rank 0 is started by run_all_reduce and starts the other ranks.
struct AllReduceRankOptions {
  int rank = 0;
  int ranks = 2;
  std::string transport = "shm";
  std::int64_t largest_bytes = std::int64_t{64} << 20;
};

// Runs one rank of this program's ring all-reduce until rank 0's input ends. Throws PeerError.
void run_all_reduce_rank(const AllReduceRankOptions& options) {
  const auto group = make_rank_group(
      options.rank, options.ranks,
      {"all-reduce-rank", "--ranks", std::to_string(options.ranks), "--transport",
       options.transport, "--largest-bytes", std::to_string(options.largest_bytes)});
  // Binds the rank's thread to its CPUs, as mpirun binds its ranks and launch binds its workers.
  bind_this_thread(cpu_share(usable_cpus(), options.rank, options.ranks));
  const auto membership = join_local_cluster(*group);
  const auto collectives = make_collectives(
      {.name = "ring",
       .num_local_ranks = 1,
       .block_elements = options.largest_bytes / std::int64_t{sizeof(float)},
       .membership = membership.get(),
       .transport = options.transport == "tcp" ? Transport::kTcp : Transport::kAuto});
  RingReducer reducer(*collectives.front());
  serve_all_reduce(
      *group, reducer,
      "ring over " + options.transport + ", " + std::to_string(options.ranks) + " ranks");
  membership->leave();
}

}  // namespace

Command declare_all_reduce_rank(FlagSet& flags, const Environment& /*environment*/) {
  const auto options = std::make_shared<AllReduceRankOptions>();
  flags.add("--rank", &options->rank, "", {.least = 0});
  flags.add("--ranks", &options->ranks, "", {.least = 1});
  flags.add("--transport", &options->transport, "", {.choices = {"shm", "tcp"}});
  flags.add("--largest-bytes", &options->largest_bytes, "", {.least = 1});
  return [options] { run_all_reduce_rank(*options); };
}

}  // namespace syncopate::bench
