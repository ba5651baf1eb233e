// The errors of the project. Each type tells who must act; only `main` turns one into an exit code.
// A message says what was expected, what was found and what to try.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#include "models/base/source_location.h"

namespace syncopate {

class Error : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The user must act: a flag, a file, the cluster's description. Exit code 2.
class UsageError : public Error {
  using Error::Error;
};

// A file or the system failed us although the request was sensible: unreadable, cut short, disk
// full. Exit code 1.
class FileError : public Error {
  using Error::Error;
};

// The caller must act: tensors that do not fit together.
class ShapeError : public Error {
  using Error::Error;
};

// This build or machine lacks what was asked for.
class UnavailableError : public Error {
  using Error::Error;
};

// Another task failed or fell silent.
class PeerError : public Error {
  using Error::Error;
};

// A device library refused a call: names the call and its code.
class DeviceError : public Error {
  using Error::Error;
};

class OutOfMemoryError : public DeviceError {
  using DeviceError::DeviceError;
};

// Training cannot go on: the loss is no longer a number.
class DivergenceError : public Error {
  using Error::Error;
};

// An invariant of ours is broken: a bug. Caught nowhere but in `main`.
class InternalError : public Error {
  using Error::Error;
};

// Throws InternalError with `what` and the caller's place unless `condition` holds.
void check(bool condition, std::string_view what, SourceLocation where = SourceLocation::current());

// "open /x/y: No such file or directory" from errno's value.
std::string describe_errno(std::string_view action, std::string_view path, int error_number);

}  // namespace syncopate
