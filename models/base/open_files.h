// The limit on open files. Programs raise this limit when they start, tasks compare it with the
// number that they need, and error messages name it. Also describes the limit on the size of files
// for error messages.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace syncopate {

// Raises this process's limit on open files from the soft limit, which is 1,024 on most systems, to
// the hard limit. `main` calls it before the first thread starts.
void raise_open_file_limit() noexcept;

// Returns how many files this process may have open at a time.
std::int64_t open_file_limit() noexcept;
// Returns whether this process has as many files open as the limit allows.
bool is_open_file_limit_reached() noexcept;

// Throws UsageError if this process may have fewer than `needed` files open. The message names the
// limit, `needed` and the command that raises the limit. task: the task that needs the files, such
// as "server 0".
void require_open_files(std::int64_t needed, std::string_view task);

// If errno is EMFILE, returns the end of an error message with the limit on open files and the
// command that raises it. Returns "" for other errors.
std::string open_files_advice(int error_number);
// If errno is EFBIG, returns the end of an error message with the limit on the size of files and
// the command that raises it. Returns "" for other errors, or if there is no such limit.
std::string file_size_advice(int error_number);

}  // namespace syncopate
