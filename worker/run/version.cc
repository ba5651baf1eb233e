#include "worker/run/version.h"

namespace syncopate {

std::string_view program_version() noexcept { return SYNCOPATE_VERSION; }

std::string_view compiler_version() noexcept { return SYNCOPATE_COMPILER; }

}  // namespace syncopate
