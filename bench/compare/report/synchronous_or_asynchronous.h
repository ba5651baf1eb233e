// The second sentence of the verdict: the best variant whose workers keep step against the best of
// those whose workers do not.
#pragma once

#include <optional>
#include <string>

#include "bench/compare/report/comparison.h"
#include "bench/compare/report/findings.h"

namespace syncopate::bench {

// Without its full stop. Nothing unless variants of both kinds were compared; `pool`:
// choices(rows).
std::optional<std::string> synchronous_or_asynchronous(const Comparison& comparison,
                                                       const Rows& rows, const Rows& pool);

}  // namespace syncopate::bench
