// The peer MPI_Allreduce of `syncopate-bench all-reduce`, with one process per rank. It can be
// started by hand:
//
//   printf 'run 1048576 100\nquit\n' | mpirun --bind-to core -n 2 mpi_all_reduce
//
// MPI carries only the summed data. Ranks that wait inside MPI spin, and between commands the
// processors belong to the other side.
#include <mpi.h>
#include <unistd.h>

#include <exception>
#include <iostream>
#include <string>

#include "bench/all_reduce/all_reduce_side.h"
#include "models/base/errors.h"
#include "models/tensor/tensor.h"

namespace {

using syncopate::DType;
using syncopate::PeerError;
using syncopate::Tensor;

void require(int code, const char* call) {
  if (code != MPI_SUCCESS) throw PeerError(std::string(call) + ": code " + std::to_string(code));
}

class MpiReducer final : public syncopate::bench::Reducer {
 public:
  std::vector<std::string> algorithms() const override { return {"in place", "two buffers"}; }

  void prepare(std::size_t algorithm, std::int64_t elements) override {
    in_place_ = algorithm == 0;
    if (input_.num_elements() == elements) return;
    input_ = syncopate::make_host_tensor({elements}, DType::kF32);
    sum_ = syncopate::make_host_tensor({elements}, DType::kF32);
  }

  std::span<float> input() override { return input_.f32(); }

  void all_reduce() override {
    const std::span<float> input = input_.f32();
    const int count = static_cast<int>(input.size());
    const void* from = in_place_ ? MPI_IN_PLACE : input.data();
    float* into = in_place_ ? input.data() : sum_.f32().data();
    require(MPI_Allreduce(from, into, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD), "MPI_Allreduce");
  }

  std::span<const float> result() override { return in_place_ ? input_.f32() : sum_.f32(); }

 private:
  bool in_place_ = true;
  Tensor input_;
  Tensor sum_;
};

void serve() {
  int rank = 0;
  int size = 0;
  require(MPI_Comm_rank(MPI_COMM_WORLD, &rank), "MPI_Comm_rank");
  require(MPI_Comm_size(MPI_COMM_WORLD, &size), "MPI_Comm_size");
  // The group's name is unique, because all ranks are children of one mpirun.
  const std::string name = "syncopate-bench-mpi-" + std::to_string(::getppid());
  syncopate::bench::RankGroup group(rank, size, name,
                                    syncopate::Deadline::after(std::chrono::seconds(30)));
  MpiReducer reducer;
  char version[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  require(MPI_Get_library_version(version, &length), "MPI_Get_library_version");
  std::string description(version, static_cast<std::size_t>(length));
  description.resize(description.find(','));  // leaves text such as "Open MPI v4.1.4"
  serve_all_reduce(group, reducer, description + ", " + std::to_string(size) + " ranks");
}

}  // namespace

int main(int argc, char** argv) {
  if (MPI_Init(&argc, &argv) != MPI_SUCCESS) return 1;
  try {
    serve();
  } catch (const std::exception& error) {
    std::cerr << "mpi_all_reduce: " << error.what() << std::endl;
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Finalize();
  return 0;
}
