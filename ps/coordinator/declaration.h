// Compares the declarations of a job's tasks: by fingerprint, and field by field if the
// fingerprints differ.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "ps/wire/message.h"

namespace syncopate::ps {

// Returns a hash of all fields of the declaration. Equal declarations have equal fingerprints in
// all tasks of one program version.
std::uint64_t fingerprint_of(const wire::DeclarationT& declaration);

// Returns the first difference between the declaration `job`, which worker `by` sent, and the
// declaration `found` of `worker`. An example is "worker 2 has --model mlp, the job has mnist-cnn
// (worker 0's)". Returns nullopt if they agree. Logs a warning for each difference in options that
// need not be equal.
std::optional<std::string> find_difference(const wire::DeclarationT& job, int by,
                                           const wire::DeclarationT& found, int worker);

}  // namespace syncopate::ps
