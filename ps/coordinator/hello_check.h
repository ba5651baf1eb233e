// Whether somebody who says hello may take part: the job's size, its nonce, its declaration, and
// what has become of whoever was this party before.
#pragma once

#include <optional>

#include "ps/coordinator/job.h"

namespace syncopate::ps {

// Why not; nothing when it may.
std::optional<wire::RefusedT> find_refusal(const Job& job, const wire::HelloT& hello);

}  // namespace syncopate::ps
