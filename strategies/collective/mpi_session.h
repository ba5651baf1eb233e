// The initialization and the end of MPI in this process. A command makes one MpiSession before any
// thread is started and before make_mpi_collectives(). Its destructor does not call MPI_Finalize,
// which may block after a failure of another process.
#pragma once

#include <chrono>
#include <functional>
#include <string>

namespace syncopate {

// The timeout of MPI's initialization, which waits for all ranks and cannot be interrupted.
struct MpiStartLimit {
  std::chrono::milliseconds timeout{0};  // 0 for no limit
  // A function that is called with an error message when the timeout has passed. It must end the
  // process. It is called on a thread that waits for the timeout.
  std::function<void(const std::string& line)> end_process;
};

class MpiSession {
 public:
  // Initializes MPI. Throws UnavailableError if MPI cannot be loaded. Throws DeviceError if MPI
  // does not start, or does not support threads.
  explicit MpiSession(MpiStartLimit limit = {});
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;

  int rank() const noexcept { return rank_; }
  int size() const noexcept { return size_; }
  // Returns the text of rank 0, at most 64 KB, on every rank. Every rank must call it, before
  // make_mpi_collectives(). Throws DeviceError.
  std::string broadcast(const std::string& text);
  // Calls MPI_Finalize, which waits for the other processes. Called after a successful run, when
  // the collectives have been destroyed.
  void close();
  // Calls MPI_Abort, which ends all processes of the job with this exit code. Called after a
  // failure.
  void abort(int exit_code) noexcept;

 private:
  MpiStartLimit limit_;
  int rank_ = 0;
  int size_ = 1;
};

// Returns the name of the loaded MPI library, such as "Open MPI v4.1.4". Throws UnavailableError if
// MPI cannot be loaded.
std::string mpi_library();

}  // namespace syncopate
