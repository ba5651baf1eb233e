// MPI's beginning and end in this process. `main`'s command makes one, before any thread and before
// make_mpi_collectives(); there is none without it. Its destructor leaves MPI as it is: after a
// failure MPI_Finalize may wait for ever for those who are gone.
#pragma once

#include <string>

namespace syncopate {

class MpiSession {
 public:
  // Throws UnavailableError: this build has no MPI; DeviceError: MPI did not start, or has no
  // support for threads.
  MpiSession();
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;

  int rank() const noexcept { return rank_; }
  int size() const noexcept { return size_; }
  // Rank 0's text, on every rank; all call, before make_mpi_collectives(). At most 64 KB. Throws
  // DeviceError.
  std::string broadcast(const std::string& text);
  // MPI_Finalize, when all went well: it waits for the other processes. The collectives are gone.
  void close();
  // MPI_Abort: ends this process and all others of the job. After a failure, with what is to be
  // the exit code; returns only when this build has no MPI.
  void abort(int exit_code) noexcept;

 private:
  int rank_ = 0;
  int size_ = 1;
};

// "Open MPI v4.1.4", as loaded; "" where this build has no MPI.
std::string mpi_library();

}  // namespace syncopate
