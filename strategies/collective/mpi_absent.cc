// Replaces mpi.cc and mpi_session.cc in builds without MPI: every use throws UnavailableError.
#include "models/base/errors.h"
#include "strategies/collective/collectives.h"
#include "strategies/collective/mpi_session.h"

namespace syncopate {
namespace {

constexpr const char* kAbsent =
    "--collective mpi: this build has no MPI; install libopenmpi-dev and build again";

}  // namespace

MpiSession::MpiSession(MpiStartLimit /*limit*/) { throw UnavailableError(kAbsent); }
std::string MpiSession::broadcast(const std::string& text) { return text; }
void MpiSession::close() {}
void MpiSession::abort(int /*exit_code*/) noexcept {}

std::string mpi_library() { return ""; }

std::vector<std::unique_ptr<Collective>> make_mpi_collectives(
    const CollectiveOptions& /*options*/) {
  throw UnavailableError(kAbsent);
}

}  // namespace syncopate
