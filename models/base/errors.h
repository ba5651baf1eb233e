// The exception types of the project. The type says where the fault lies; only `main` turns an
// exception into an exit code. A message says what was expected, what was found and what to try.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace syncopate {

// The place of a call, for error messages. SourceLocation replaces std::source_location, which
// clang 14 does not accept from libstdc++ 12.
struct SourceLocation {
  const char* file;
  int line;

  // Returns the place of the call. As the value of a default argument, this is the line of the
  // caller of the function with this argument.
  static constexpr SourceLocation current(const char* file = __builtin_FILE(),
                                          int line = __builtin_LINE()) noexcept {
    return {file, line};
  }
};

class Error : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Thrown when the user must correct a flag, a file or the description of the cluster. Exit code 2.
class UsageError : public Error {
  using Error::Error;
};

// Thrown when a valid request failed in the file system: a file is unreadable or truncated, or the
// disk is full. Exit code 1.
class FileError : public Error {
  using Error::Error;
};

// Thrown when a sample cannot be read, or when more samples cannot be read than the user allows.
// Every task of the job would fail in the same way.
class BadSampleError : public FileError {
  using FileError::FileError;
};

// Thrown when the shapes or types of the tensors that the caller passed do not fit together.
class ShapeError : public Error {
  using Error::Error;
};

// Thrown when this build or machine lacks a requested device, library or feature.
class UnavailableError : public Error {
  using Error::Error;
};

// Thrown when another task failed, or did not answer within its timeout.
class PeerError : public Error {
  using Error::Error;
};

// Thrown when a device library refused a call; the message names the call and its error code.
class DeviceError : public Error {
  using Error::Error;
};

class OutOfMemoryError : public DeviceError {
  using DeviceError::DeviceError;
};

// Thrown when training cannot continue because the loss is not a finite number.
class DivergenceError : public Error {
  using Error::Error;
};

// Thrown when an invariant of this program is broken, which is a bug. Only `main` catches it.
class InternalError : public Error {
  using Error::Error;
};

// Throws InternalError, naming `what` and the line of the caller, unless `condition` holds.
void check(bool condition, std::string_view what, SourceLocation where = SourceLocation::current());

// Returns a text such as "open /x/y: No such file or directory" from an action, a path and a value
// of errno. For EMFILE and EFBIG, the text also names the limit and the command that raises the
// limit.
std::string describe_errno(std::string_view action, std::string_view path, int error_number);

}  // namespace syncopate
