// Requests to stop by name, as people read them, and by number, as they travel between tasks
// (strategies/variable_store.h).
#pragma once

#include <cstddef>
#include <string_view>

namespace syncopate {

// "SIGTERM"; "a request" for those that have no name of their own.
std::string_view stop_name(std::size_t kind);
// A name that has no kind of its own is of "a request".
std::size_t stop_kind(std::string_view name);

}  // namespace syncopate
