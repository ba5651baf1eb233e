// The limit on open files: programs raise it at their start, tasks compare it with what they need,
// and error messages name it. Also the limit on the size of files, for error messages.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace syncopate {

// Raises this process's limit on open files from the soft limit, which is 1,024 on most systems, to
// the hard limit. `main` calls it before the first thread starts.
void raise_open_file_limit() noexcept;

// Returns how many files this process may have open.
std::int64_t open_file_limit() noexcept;
// True while this process has as many files open as it may.
bool is_open_file_limit_reached() noexcept;

// Throws UsageError, naming the limit, the need and the command that raises the limit, if this
// process may have fewer than `needed` files open. task: what needs them, such as "server 0".
void require_open_files(std::int64_t needed, std::string_view task);

// Returns the end of an error message for this value of errno: the limit on open files and the
// command that raises it for EMFILE, "" for other errors.
std::string open_files_advice(int error_number);
// Returns the same for the limit on the size of files and EFBIG; "" if there is no such limit.
std::string file_size_advice(int error_number);

}  // namespace syncopate
