// The initialization and the end of MPI in this process. A command makes one MpiSession before any
// thread is started and before make_mpi_collectives(). Its destructor does not call MPI_Finalize,
// which may block after a failure of another process.
#pragma once

#include <chrono>
#include <functional>
#include <string>

namespace syncopate {

// The limit on the start of MPI, which waits for all ranks and cannot be interrupted.
struct MpiStartLimit {
  std::chrono::milliseconds timeout{0};  // 0: no limit
  // Called on another thread, with an error message, when the timeout has passed; it ends the
  // process.
  std::function<void(const std::string& line)> end_process;
};

class MpiSession {
 public:
  // Initializes MPI. Throws UnavailableError when MPI cannot be loaded, DeviceError when it does
  // not start or has no support for threads.
  explicit MpiSession(MpiStartLimit limit = {});
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;

  int rank() const noexcept { return rank_; }
  int size() const noexcept { return size_; }
  // Returns rank 0's text, of at most 64 KB, on every rank. Every rank calls this before
  // make_mpi_collectives(). Throws DeviceError.
  std::string broadcast(const std::string& text);
  // Calls MPI_Finalize after a successful run, which waits for the other processes. The collectives
  // must have been destroyed.
  void close();
  // Calls MPI_Abort after a failure, which ends this process and all others of the job with this
  // exit code.
  void abort(int exit_code) noexcept;

 private:
  MpiStartLimit limit_;
  int rank_ = 0;
  int size_ = 1;
};

// The name of the loaded MPI library, "Open MPI v4.1.4". Throws UnavailableError when MPI cannot be
// loaded.
std::string mpi_library();

}  // namespace syncopate
