#include "strategies/collective/mpi_session.h"

#include <fmt/format.h>
#include <mpi.h>
#include <pthread.h>

#include <array>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include "models/base/deadline.h"
#include "models/base/errors.h"

namespace syncopate {
namespace {

// Ends the process when the object still exists after the limit of a call that waits for all ranks.
class MpiStartTimer {
 public:
  MpiStartTimer(const MpiStartLimit& limit, const char* call) {
    if (limit.timeout.count() <= 0) return;
    thread_ = std::jthread([this, &limit, call](const std::stop_token& stop) {
      pthread_setname_np(pthread_self(), "mpi-start");
      std::unique_lock lock(mutex_);
      ended_.wait_for(lock, stop, limit.timeout, [] { return false; });
      if (stop.stop_requested()) return;
      limit.end_process(fmt::format(
          "{} did not return within {}: another rank is stopped or was not started, or TMPDIR is "
          "full; see the output of mpirun (--rendezvous-timeout gives MPI longer)",
          call, in_seconds(limit.timeout)));
    });
  }

 private:
  std::mutex mutex_;
  std::condition_variable_any ended_;
  std::jthread thread_;
};

}  // namespace

MpiSession::MpiSession(MpiStartLimit limit) : limit_(std::move(limit)) {
  const MpiStartTimer timer(limit_, "MPI_Init_thread");
  int provided = MPI_THREAD_SINGLE;
  // MPI_THREAD_SERIALIZED suffices: from now to the end only the communication thread calls MPI.
  if (MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided) != MPI_SUCCESS) {
    throw DeviceError("MPI_Init_thread failed; does `mpirun -n 1 true` work on this machine?");
  }
  if (provided < MPI_THREAD_SERIALIZED) {
    throw DeviceError(
        "MPI_Init_thread: this MPI has no support for threads (MPI_THREAD_SERIALIZED); choose "
        "--collective ring");
  }
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  MPI_Comm_size(MPI_COMM_WORLD, &size_);
}

std::string MpiSession::broadcast(const std::string& text) {
  constexpr std::size_t kMostBytes = std::size_t{64} << 10;
  check(text.size() < kMostBytes, "a text that MPI broadcasts at the start is below 64 KB");
  std::string bytes = text;
  bytes.resize(kMostBytes);
  const MpiStartTimer timer(limit_, "MPI_Bcast");
  if (MPI_Bcast(bytes.data(), static_cast<int>(bytes.size()), MPI_CHAR, 0, MPI_COMM_WORLD) !=
      MPI_SUCCESS) {
    throw DeviceError("MPI_Bcast failed while the tasks met");
  }
  bytes.resize(bytes.find('\0'));
  return bytes;
}

void MpiSession::close() {
  if (MPI_Finalize() != MPI_SUCCESS) throw DeviceError("MPI_Finalize failed");
}

void MpiSession::abort(int exit_code) noexcept { MPI_Abort(MPI_COMM_WORLD, exit_code); }

std::string mpi_library() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
  int length = 0;
  MPI_Get_library_version(text.data(), &length);
  // Returns the name of the MPI library, "Open MPI v4.1.4, package: Debian OpenMPI, ident: ...".
  const std::string loaded(text.data(), static_cast<std::size_t>(length));
  return loaded.substr(0, loaded.find(','));
}

}  // namespace syncopate
