// Compares declarations of a job: their fingerprints, and field by field where these differ.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "ps/wire/message.h"

namespace syncopate::ps {

// Returns a hash of all fields of the declaration. Equal declarations have equal fingerprints in
// all tasks of one program version.
std::uint64_t fingerprint_of(const wire::DeclarationT& declaration);

// Returns the first difference between the job's declaration, which worker `by` sent, and the
// declaration of `worker`, such as "worker 2 has --model mlp, the job has mnist-cnn (worker 0's)";
// nothing if they agree. Differences in options that need not be equal are logged as warnings.
std::optional<std::string> find_difference(const wire::DeclarationT& job, int by,
                                           const wire::DeclarationT& found, int worker);

}  // namespace syncopate::ps
