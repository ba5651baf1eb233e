#include "strategies/collective/mpi_session.h"

#include <mpi.h>

#include <array>

#include "models/base/errors.h"

namespace syncopate {

MpiSession::MpiSession() {
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
