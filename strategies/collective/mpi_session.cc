#include "strategies/collective/mpi_session.h"

#include <fmt/format.h>
#include <pthread.h>

#include <array>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include "models/base/deadline.h"
#include "models/base/errors.h"
#include "strategies/collective/mpi_calls.h"

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
  bool has_threads = false;
  // From now to the end only the communication thread calls MPI.
  if (mpi_calls().init(&has_threads) != 0) {
    throw DeviceError("MPI_Init_thread failed; does `mpirun -n 1 true` work on this machine?");
  }
  if (!has_threads) {
    throw DeviceError(
        "MPI_Init_thread: this MPI has no support for threads (MPI_THREAD_SERIALIZED); choose "
        "--collective ring");
  }
  rank_ = mpi_calls().rank();
  size_ = mpi_calls().size();
}

std::string MpiSession::broadcast(const std::string& text) {
  constexpr std::size_t kMostBytes = std::size_t{64} << 10;
  check(text.size() < kMostBytes, "a text that MPI broadcasts at the start is below 64 KB");
  std::string bytes = text;
  bytes.resize(kMostBytes);
  const MpiStartTimer timer(limit_, "MPI_Bcast");
  if (mpi_calls().broadcast(bytes.data(), static_cast<int>(bytes.size())) != 0) {
    throw DeviceError("MPI_Bcast failed while the tasks met");
  }
  bytes.resize(bytes.find('\0'));
  return bytes;
}

void MpiSession::close() {
  if (mpi_calls().finalize() != 0) throw DeviceError("MPI_Finalize failed");
}

void MpiSession::abort(int exit_code) noexcept { mpi_calls().abort(exit_code); }

std::string mpi_library() {
  std::array<char, 8192> text{};
  mpi_calls().library_version(text.data(), static_cast<int>(text.size()));
  const std::string loaded = text.data();  // "Open MPI v4.1.4, package: Debian OpenMPI, ident: ..."
  return loaded.substr(0, loaded.find(','));
}

}  // namespace syncopate
