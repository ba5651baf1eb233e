// Decides from a task's Hello whether the task may register with the job. The functions change
// nothing; registration.h registers the tasks that are not refused.
#pragma once

#include <optional>

#include "ps/coordinator/job.h"

namespace syncopate::ps {

// Returns the refusal of a task that does not know the job's nonce.
wire::RefusedT refuse_other_job(const wire::HelloT& hello);

// Returns the refusal of a task that does not fit the job's size or declaration, or has an
// incarnation that may not register. Returns nullopt if the task may register.
std::optional<wire::RefusedT> find_refusal(const Job& job, const wire::HelloT& hello);

// Returns whether the declaration of a new worker must be compared with the job's declaration, and
// the worker's Hello does not contain it.
bool lacks_declaration(const Job& job, const wire::HelloT& hello);

}  // namespace syncopate::ps
